import { BlockList, isIP, SocketAddress } from 'node:net'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { text as textInput } from './input.ts'
import { LruMap } from './lru-map.ts'

/** Length of an entry of an address whitelist. */
const networkLengthMax = 64

/** Whether an address is in a list of networks. `null`, an address that nobody knows, is in none. */
export type AddressMatcher = (address: string | null) => boolean

/** A range of addresses; one address is a range of its own. */
export interface Network {
  address: string
  family: 'ipv4' | 'ipv6'
  prefix: number
}

/**
 * The address a request comes from, in canonical form; `null` where it cannot be known.
 * `X-Forwarded-For` is read from its end, and only as far as those who wrote it are trusted: whatever a
 * caller put in front stays unread. What is no address, written by a trusted proxy, hides the caller: `null`.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
  isTrusted: AddressMatcher,
): string | null {
  // A link-local peer carries the name of our own network card behind a percent sign.
  let address = canonicalAddress(socketAddress?.split('%', 1)[0] ?? '')
  if (forwardedFor === undefined || !isTrusted(address)) return address
  const hops = String(forwardedFor)
    .split(',')
    .map((hop) => hop.trim())
    .filter(Boolean)
  while (address !== null && isTrusted(address)) {
    const hop = hops.pop()
    if (hop === undefined) return address
    address = canonicalAddress(withoutPort(hop))
  }
  return address
}

/**
 * Whether the whitelist lets the address in; an empty one lets all in (see
 * docs/design/rules.md#sign-in-and-tokens).
 */
export function isAddressAllowed(whitelist: readonly string[], address: string | null): boolean {
  return whitelist.length === 0 || addressMatcher(whitelist)(address)
}

/** Matches a list of addresses and CIDR ranges. An entry that is neither matches nothing. */
export function addressMatcher(entries: readonly string[]): AddressMatcher {
  const name = entries.join()
  const known = matchers.get(name)
  if (known) return known
  const networks = new BlockList()
  for (const entry of entries) {
    const network = parseNetwork(entry)
    if (network) networks.addSubnet(network.address, network.prefix, network.family)
  }
  const matcher: AddressMatcher = (address) => {
    const canonical = address === null ? null : canonicalAddress(address)
    return canonical !== null && networks.check(canonical, familyOf(canonical))
  }
  matchers.set(name, matcher)
  return matcher
}

/** Reads `192.0.2.1`, `192.0.2.0/24` or an IPv6 form of these; `null` where the text is no such thing. */
export function parseNetwork(entry: string): Network | null {
  const [host = '', bits, ...rest] = entry.split('/')
  const address = canonicalAddress(host)
  if (address === null || rest.length > 0) return null
  const family = familyOf(address)
  const width = family === 'ipv4' ? 32 : 128
  if (bits === undefined) return { address, family, prefix: width }
  if (!/^\d{1,3}$/.test(bits)) return null
  // The range of a mapped address counts its bits in the IPv6 form.
  const isMapped = family === 'ipv4' && isIP(host) === 6
  const prefix = Number(bits) - (isMapped ? 96 : 0)
  return prefix >= 0 && prefix <= width ? { address, family, prefix } : null
}

/**
 * The one spelling of an entry of a whitelist: an address, or a range that begins where it says.
 * @returns what is wrong with it as `problem`, words that go on after the name of a field
 */
export function canonicalEntry(entry: string): { entry: string } | { problem: string } {
  const network = parseNetwork(entry)
  if (!network) return { problem: 'must be an address or a CIDR range' }
  const { address, family, prefix } = network
  if (prefix === (family === 'ipv4' ? 32 : 128)) return { entry: address }
  const kind = family === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  const start = canonicalAddress(kind.networkAddressFromCIDR(`${address}/${prefix}`).toString())
  const range = `${start}/${prefix}`
  // Who writes 10.0.0.7/8 may have meant one address, and would let in sixteen million.
  return start === address ? { entry: range } : { problem: `must be ${range}, or one address of it` }
}

/** An entry of a list of addresses, in its one spelling. */
export const networkEntry = textInput({ min: 1, max: networkLengthMax }).transform((value, ctx) => {
  const read = canonicalEntry(value.trim())
  if ('entry' in read) return read.entry
  ctx.addIssue({ code: 'custom', message: read.problem })
  return z.NEVER
})

/** Whether all of an address or range lies in one of a list. */
export function isWithin(entry: string, ranges: readonly string[]): boolean {
  const inner = parseNetwork(entry)
  return ranges.some((range) => {
    const outer = parseNetwork(range)
    return inner && outer && outer.prefix <= inner.prefix && addressMatcher([range])(inner.address)
  })
}

/** The one spelling of an address: IPv6 shortened, in lower case, and IPv4 where it only wraps one. */
export function canonicalAddress(text: string): string | null {
  const version = text.includes('%') ? 0 : isIP(text)
  if (version === 0) return null
  if (version === 4) return text
  const { address } = new SocketAddress({ address: text, family: 'ipv6' })
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address
}

/** Whose address it is, as far as one can tell: an IPv6 customer has the 64 bits behind its network's. */
export function addressBlock(address: string | null): string {
  if (!address?.includes(':')) return address ?? 'unknown'
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter(Boolean)
  const after = tail?.split(':').filter(Boolean) ?? []
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}

/** A merchant's list stays the same for days, while each of its requests asks. */
const matchers = new LruMap<string, AddressMatcher>(500)

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4'
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
