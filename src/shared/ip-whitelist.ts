import { BlockList, isIP, SocketAddress } from 'node:net'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { text as textInput } from './input.ts'
import { LruMap } from './lru-map.ts'

/** The most characters of an entry of an address whitelist. */
const networkLengthMax = 64

/** A function that tells whether an address is in a list of networks. `null` (unknown) is in none. */
export type AddressMatcher = (address: string | null) => boolean

/** A range of addresses. A single address is a range too. */
export interface Network {
  address: string
  family: 'ipv4' | 'ipv6'
  prefix: number
}

/**
 * Returns the address from which a request comes, in canonical form; `null` if it is not known.
 * If the socket's address is a trusted proxy, the function reads `X-Forwarded-For` from its end, and stops at
 * the first address that is not a trusted proxy: entries that a caller put in front stay unread. If a trusted
 * proxy wrote an entry that is no address, the caller is unknown: `null`.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | readonly string[] | undefined,
  isTrusted: AddressMatcher,
): string | null {
  // The address of a link-local peer ends with a percent sign and the name of our network interface.
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

/**
 * Makes a matcher of addresses and CIDR ranges. An entry that is neither matches nothing. A range matches
 * addresses of its own family only: `::/0` holds no IPv4 address. `whitelist_allows` is the same rule in SQL.
 */
export function addressMatcher(entries: readonly string[]): AddressMatcher {
  const name = entries.join()
  const known = matchers.get(name)
  if (known) return known
  // One list of both families would find an IPv4 address in an IPv6 range as well, in its mapped form.
  const networks = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const entry of entries) {
    const network = parseNetwork(entry)
    if (network) networks[network.family].addSubnet(network.address, network.prefix, network.family)
  }
  const matcher: AddressMatcher = (address) => {
    const canonical = address === null ? null : canonicalAddress(address)
    if (canonical === null) return false
    const family = familyOf(canonical)
    return networks[family].check(canonical, family)
  }
  matchers.set(name, matcher)
  return matcher
}

/** Reads `192.0.2.1`, `192.0.2.0/24` or an IPv6 form of these; returns `null` for any other text. */
export function parseNetwork(entry: string): Network | null {
  const [host = '', bits, ...rest] = entry.split('/')
  const address = canonicalAddress(host)
  if (address === null || rest.length > 0) return null
  const family = familyOf(address)
  const width = family === 'ipv4' ? 32 : 128
  if (bits === undefined) return { address, family, prefix: width }
  if (!/^(?:0|[1-9]\d{0,2})$/.test(bits)) return null
  // The prefix of an IPv4-mapped address counts the bits of the IPv6 form.
  const isMapped = family === 'ipv4' && isIP(host) === 6
  const prefix = Number(bits) - (isMapped ? 96 : 0)
  return prefix >= 0 && prefix <= width ? { address, family, prefix } : null
}

/**
 * Returns the canonical spelling of an entry of a whitelist: an address, or a range with its first address.
 * @returns the entry, or a `problem` as words that follow the name of a field
 */
export function canonicalEntry(entry: string): { entry: string } | { problem: string } {
  const network = parseNetwork(entry)
  if (!network) return { problem: 'must be an address or a CIDR range' }
  const { address, family, prefix } = network
  if (prefix === (family === 'ipv4' ? 32 : 128)) return { entry: address }
  const kind = family === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  const start = canonicalAddress(kind.networkAddressFromCIDR(`${address}/${prefix}`).toString())
  const range = `${start}/${prefix}`
  // A person who writes 10.0.0.7/8 may mean one address, and would allow 16 million addresses.
  return start === address ? { entry: range } : { problem: `must be ${range}, or one address of it` }
}

/** The schema of an entry of a list of addresses. It gives the canonical spelling. */
export const networkEntry = textInput({ min: 1, max: networkLengthMax }).transform((value, ctx) => {
  const read = canonicalEntry(value.trim())
  if ('entry' in read) return read.entry
  ctx.addIssue({ code: 'custom', message: read.problem })
  return z.NEVER
})

/** Whether a whole address or range lies within one of the ranges of a list. */
export function isWithin(entry: string, ranges: readonly string[]): boolean {
  const inner = parseNetwork(entry)
  return ranges.some((range) => {
    const outer = parseNetwork(range)
    return inner && outer && outer.prefix <= inner.prefix && addressMatcher([range])(inner.address)
  })
}

/**
 * Returns the canonical spelling of an address: IPv6 short and in lower case, a mapped IPv4 as IPv4. Returns
 * null if the text is no address.
 */
export function canonicalAddress(text: string): string | null {
  const version = text.includes('%') ? 0 : isIP(text)
  if (version === 0) return null
  if (version === 4) return text
  const { address } = new SocketAddress({ address: text, family: 'ipv6' })
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address
}

/**
 * Returns the block of addresses that one customer probably has, as a name for counting: an IPv4 address
 * itself, the /64 network of an IPv6 address, `unknown` for null.
 * @param groups the groups of an IPv6 address that name its block
 */
export function addressBlock(address: string | null, groups = 4): string {
  if (!address?.includes(':')) return address ?? 'unknown'
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter(Boolean)
  const after = tail?.split(':').filter(Boolean) ?? []
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return `${[...before, ...zeros, ...after].slice(0, groups).join(':')}::/${16 * groups}`
}

/** The matchers used last. A merchant's list stays the same for days, and each request needs its matcher. */
const matchers = new LruMap<string, AddressMatcher>(500)

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4'
}

/** Removes the port, which some proxies add: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
