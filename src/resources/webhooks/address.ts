import { Resolver } from 'node:dns/promises'
import type { LookupFunction, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { callbackify } from 'node:util'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import { z } from 'zod'
import type { Config } from '../../config/config.ts'
import { invalidInput, readInput, webAddress } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'

/** Registering resolves the name. Choice: whoever registers waits for it. */
const webhookResolveMs = 2_000

// Whoever registers an endpoint has us send requests from inside our network: what an address may lead to is
// decided here, at registration and again for every connection.

/** All addresses of a host name. @throws Error where it has none */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** What addresses are judged by. */
export interface AddressRules {
  mode: Config['mode']
  /** The DNS where it is left out. */
  resolve?: Resolve | undefined
}

/** An address that we do not send to; `message` goes on after the name of the field. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** A name that leads nowhere now. */
export class NameNotFound extends Error {
  override readonly name = 'NameNotFound'
}

/**
 * Judges the address that an endpoint shall have, its name resolved. Waits for the DNS: call it outside of
 * transactions.
 * @returns the address as it is kept: in its usual writing, without a fragment
 * @throws DomainError INVALID_INPUT that names `url`
 */
export async function checkWebhookUrl(text: string, rules: AddressRules): Promise<string> {
  const { url } = readInput(z.object({ url: webAddress }), { url: text })
  try {
    const read = readWebhookUrl(url, rules.mode)
    if (read.href.length > limits.urlLengthMax) {
      throw new AddressRefused(`must have at most ${limits.urlLengthMax} characters`)
    }
    await lookThrough(read.hostname, rules)
    return read.href
  } catch (error) {
    if (error instanceof AddressRefused) throw invalidInput([{ field: 'url', message: error.message }])
    throw error
  }
}

/**
 * A name that is not there yet, or whose servers are silent, is no reason to refuse it: it is judged again at
 * every delivery.
 * @throws AddressRefused
 */
async function lookThrough(host: string, rules: AddressRules): Promise<void> {
  const found = addressesOf(host, rules).catch((error: unknown) => {
    if (error instanceof AddressRefused) throw error
  })
  const waited = new AbortController()
  await Promise.race([
    found,
    sleep(webhookResolveMs, undefined, { ref: false, signal: waited.signal }).catch(() => {}),
  ])
  waited.abort()
}

/**
 * Reads an address by all that its text tells.
 * @throws AddressRefused
 */
export function readWebhookUrl(text: string, mode: AddressRules['mode']): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new AddressRefused('must be an http or https address')
  }
  if (url.username || url.password) throw new AddressRefused('must not carry credentials')
  if (mode === 'production') {
    if (url.protocol !== 'https:') throw new AddressRefused('must begin with https://')
    const port = Number(url.port || 443)
    if (port !== 443 && port < 1_024) throw new AddressRefused('must have port 443, or 1024 and above')
  }
  url.hash = ''
  // `localhost.` is localhost, and no certificate names a host with its last dot.
  url.hostname = url.hostname.replace(/\.$/, '')
  return url
}

/**
 * Connects to what an address leads to at this moment: its name is resolved once, every address that it has
 * must be allowed, and one of these is connected to, under the name that was asked for.
 * @param connected is told where each attempt goes to
 */
export function guardedConnector(
  rules: AddressRules,
  options: buildConnector.BuildOptions,
  connected: (origin: string, address: string) => void,
): buildConnector.connector {
  const connect = callbackify(async (target: buildConnector.Options) => {
    const origin = `${target.protocol}//${target.host ?? target.hostname}`
    const addresses = await addressesOf(target.hostname, rules)
    connected(origin, addresses[0] ?? '')
    const socket = await dial(target, { ...options, lookup: pinned(addresses) })
    const { remoteAddress = '' } = socket
    connected(origin, remoteAddress)
    if (isAllowed(remoteAddress, rules.mode)) return socket
    socket.destroy()
    throw new AddressRefused(elsewhere)
  })
  return (target, callback) =>
    connect(target, (error, socket) => (error ? callback(error, null) : callback(null, socket)))
}

function dial(target: buildConnector.Options, options: buildConnector.BuildOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    buildConnector(options)(target, (error, socket) => (error ? reject(error) : resolve(socket)))
  })
}

/** The same answer to whoever asks, in both forms of node's `lookup`. */
function pinned(addresses: readonly string[]): LookupFunction {
  const records = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const [first = { address: '', family: 4 }] = records
  return (_hostname, options, callback) =>
    options.all ? callback(null, records) : callback(null, first.address, first.family)
}

const elsewhere = 'must lead to an address of the public internet'

/**
 * All addresses that a host has now, each of them allowed.
 * @throws AddressRefused where one is not
 * @throws NameNotFound
 */
async function addressesOf(host: string, { mode, resolve = resolveByDns }: AddressRules): Promise<string[]> {
  const name = host.replace(/^\[(.*)\]$/, '$1')
  const addresses = ipaddr.isValid(name)
    ? [name]
    : isLoopbackName(name)
      ? ['127.0.0.1', '::1']
      : [...(await resolve(name))]
  if (addresses.length === 0) throw new NameNotFound(name)
  if (!addresses.every((address) => isAllowed(address, mode))) throw new AddressRefused(elsewhere)
  return addresses
}

/** Names that mean this machine wherever they are asked for (RFC 6761). */
function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** What no table of special ranges knows: the inner door of a cloud, within its owner's public range. */
const innerAddresses: ReadonlySet<string> = new Set(['168.63.129.16'])

/** The part of IPv6 that is given out (RFC 4291). Outside of it lie `::127.0.0.1` and what nobody has yet. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Whether an address is of the public internet; a sandbox also reaches its own machine. */
function isAllowed(address: string, mode: AddressRules['mode']): boolean {
  if (!ipaddr.isValid(address)) return false
  // An IPv4 address in the clothes of IPv6 is what it is inside.
  const ip = ipaddr.process(address)
  const range = ip.range()
  if (range === 'loopback') return mode === 'sandbox'
  if (ip instanceof ipaddr.IPv6 && !ip.match(globalUnicast)) return false
  return range === 'unicast' && !innerAddresses.has(ip.toString())
}

/**
 * Asks the DNS itself. Not `dns.lookup`: it takes one of four threads that all of the process share, and a
 * name whose servers are silent would hold up the names of operators.
 */
async function resolveByDns(name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 1_500, tries: 2 })
  const asked = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = asked.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (found.length === 0) throw new NameNotFound(name)
  return found
}
