import { Resolver } from 'node:dns/promises'
import type { LookupFunction, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { callbackify } from 'node:util'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import type { Config } from '../../config/config.ts'
import { invalidInput } from '../../shared/input.ts'
import { webAddress } from '../../shared/web-address.ts'

/**
 * The longest wait for the DNS, in ms, when an endpoint is registered or changed. Choice: the caller waits
 * too.
 */
const webhookResolveMs = 2_000

// The address of an endpoint comes from a merchant, and the service sends requests to it from inside its own
// network. This file decides which addresses are allowed, at registration and again for every connection.

/** A function that finds all addresses of a host name. @throws Error where the name has none */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** The settings that decide which addresses are allowed. */
export interface AddressRules {
  mode: Config['mode']
  /** Default: the DNS. */
  resolve?: Resolve | undefined
}

/**
 * The error for an address that the service does not send to; `message` is written to follow the field's
 * name.
 */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** The error for a host name that has no address now. */
export class NameNotFound extends Error {
  override readonly name = 'NameNotFound'
}

/**
 * Checks the address of a new or changed endpoint, also the addresses that its name resolves to. Call it
 * outside of transactions, because it waits for the DNS.
 * @returns the address as it is stored: normalized, without a fragment
 * @throws DomainError INVALID_INPUT that names `url`
 */
export async function checkWebhookUrl(text: string, rules: AddressRules): Promise<string> {
  try {
    const read = readWebhookUrl(text, rules.mode)
    await lookThrough(read.hostname, rules)
    return read.href
  } catch (error) {
    if (error instanceof AddressRefused) throw invalidInput([{ field: 'url', message: error.message }])
    throw error
  }
}

/**
 * Refuses a host with a forbidden address. A host name that does not exist yet, or a DNS server that does not
 * answer, is no reason to refuse: the name is checked again at every delivery.
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
 * Parses an address and checks everything that its text alone shows.
 * @throws AddressRefused
 */
export function readWebhookUrl(text: string, mode: AddressRules['mode']): URL {
  const read = webAddress.safeParse(text)
  if (!read.success) throw new AddressRefused(read.error.issues[0]?.message)
  const url = new URL(read.data)
  if (mode === 'production') {
    if (url.protocol !== 'https:') throw new AddressRefused('must begin with https://')
    const port = Number(url.port || 443)
    if (port !== 443 && port < 1_024) throw new AddressRefused('must have port 443, or 1024 and above')
  }
  url.hash = ''
  // Remove a last dot: `localhost.` is localhost, and no certificate names a host with a last dot.
  url.hostname = url.hostname.replace(/\.$/, '')
  return url
}

/**
 * Makes a connector that resolves a name once, requires every address of the name to be allowed, and connects
 * to one of them. TLS still checks the certificate for the name.
 * @param connected gets the first address before the connection, then the address that was reached
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

/** Makes a `lookup` function of node that always answers these addresses, in both forms of the callback. */
function pinned(addresses: readonly string[]): LookupFunction {
  const records = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const [first = { address: '', family: 4 }] = records
  return (_hostname, options, callback) =>
    options.all ? callback(null, records) : callback(null, first.address, first.family)
}

const elsewhere = 'must lead to an address of the public internet'

/**
 * Finds all present addresses of a host and requires each of them to be allowed.
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

/** Whether a name means this machine for every client (RFC 6761). */
function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** Refused addresses in public ranges: Azure's platform address, which no table of special ranges has. */
const innerAddresses: ReadonlySet<string> = new Set(['168.63.129.16'])

/** The part of IPv6 that is allocated (RFC 4291). `::127.0.0.1` and unallocated addresses lie outside. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether the service may connect to an address: one of the public internet, in a sandbox also one of this
 * machine.
 */
function isAllowed(address: string, mode: AddressRules['mode']): boolean {
  if (!ipaddr.isValid(address)) return false
  // An IPv4 address that is mapped into IPv6 is judged as IPv4.
  const ip = ipaddr.process(address)
  const range = ip.range()
  if (range === 'loopback') return mode === 'sandbox'
  if (ip instanceof ipaddr.IPv6 && !ip.match(globalUnicast)) return false
  return range === 'unicast' && !innerAddresses.has(ip.toString())
}

/**
 * Asks the DNS server itself. `dns.lookup` would take one of four threads that the whole process shares, and
 * a name whose DNS server does not answer would delay the look-up of operators' names.
 */
async function resolveByDns(name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 1_500, tries: 2 })
  const asked = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = asked.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (found.length === 0) throw new NameNotFound(name)
  return found
}
