import { expect, test } from 'vitest'
import {
  addressMatcher,
  addressBlock,
  canonicalAddress,
  canonicalEntry,
  clientAddress,
  isAddressAllowed,
  isWithin,
  parseNetwork,
} from '../../src/shared/ip-whitelist.ts'
import { createTestDatabase } from '../kit/database.ts'

const proxies = ['10.0.0.0/8', '2001:db8:ffff::/48', '::1']

/** Name, the socket's address, `X-Forwarded-For`, and the address of the caller. */
const callers: readonly [
  string,
  string | undefined,
  string | readonly string[] | undefined,
  string | null,
][] = [
  ['no header: the socket', '192.0.2.7', undefined, '192.0.2.7'],
  ['a header from an unknown peer is not read', '192.0.2.7', '198.51.100.1', '192.0.2.7'],
  ['a spoofed proxy address from an unknown peer is not read either', '192.0.2.7', '10.0.0.1', '192.0.2.7'],
  ['a trusted proxy names the caller', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  [
    'entries that the caller put in front are not read',
    '10.0.0.1',
    '203.0.113.9, 198.51.100.1',
    '198.51.100.1',
  ],
  ['a chain of trusted proxies is walked', '10.0.0.1', '198.51.100.1, 10.0.0.3, 10.0.0.2', '198.51.100.1'],
  [
    'a spoofed chain ends at the first untrusted address',
    '10.0.0.1',
    '203.0.113.9, 10.9.9.9, 198.51.100.1',
    '198.51.100.1',
  ],
  ['a chain of trusted addresses only: the first of the chain', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['a trusted peer without a header is itself', '10.0.0.1', undefined, '10.0.0.1'],
  ['an empty header names no address', '10.0.0.1', '', '10.0.0.1'],
  ['empty places in the list are skipped', '10.0.0.1', '198.51.100.1,, 10.0.0.2, ', '198.51.100.1'],
  ['an invalid entry by a trusted proxy hides the caller', '10.0.0.1', 'unknown', null],
  ['an invalid entry behind the caller is not reached', '10.0.0.1', 'garbage, 198.51.100.1', '198.51.100.1'],
  ['an invalid entry after a proxy hides the caller', '10.0.0.1', '198.51.100.1, _hidden, 10.0.0.2', null],
  ['a range is no address', '10.0.0.1', '198.51.100.0/24', null],
  ['numbers that look octal are refused', '10.0.0.1', '0198.51.100.1', null],
  ['a short form of IPv4 is refused', '10.0.0.1', '3325256705', null],
  ['a zone in the header is refused', '10.0.0.1', 'fe80::1%eth0', null],
  ['a zone of the socket is our own and dropped', 'fe80::1%eth0', undefined, 'fe80::1'],
  ['a port is dropped', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
  ['a port of an IPv6 address is dropped', '10.0.0.1', '[2001:db8::5]:4711', '2001:db8::5'],
  ['brackets alone too', '10.0.0.1', '[2001:db8::5]', '2001:db8::5'],
  ['a mapped socket is IPv4', '::ffff:192.0.2.7', undefined, '192.0.2.7'],
  ['a mapped proxy is trusted', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['a mapped caller is IPv4', '10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
  ['mapped in hexadecimal', '10.0.0.1', '0:0:0:0:0:FFFF:C633:6401', '198.51.100.1'],
  ['a mapped proxy inside the chain is trusted', '10.0.0.1', '198.51.100.1, ::ffff:10.0.0.2', '198.51.100.1'],
  ['IPv6 proxies are trusted', '2001:db8:ffff::1', '2001:DB8:0:0::5', '2001:db8::5'],
  ['an IPv6 neighbour of the proxies is not', '2001:db8:fffe::1', '198.51.100.1', '2001:db8:fffe::1'],
  ['several headers are one list', '10.0.0.1', ['203.0.113.9', '198.51.100.1, 10.0.0.2'], '198.51.100.1'],
  ['no socket address: no caller address', undefined, '198.51.100.1', null],
]

test.each(callers)('%s', (_name, socket, header, expected) => {
  expect(clientAddress(socket, header, addressMatcher(proxies))).toBe(expected)
})

test('without trusted proxies no header is read', () => {
  expect(clientAddress('10.0.0.1', '198.51.100.1', addressMatcher([]))).toBe('10.0.0.1')
})

/** Name, whitelist, address, and whether the caller is let in. */
const visits: readonly [string, readonly string[], string | null, boolean][] = [
  ['an empty list lets all callers in', [], '198.51.100.1', true],
  ['an empty list lets in a caller without an address', [], null, true],
  ['a list keeps out a caller without an address', ['0.0.0.0/0', '::/0'], null, false],
  ['the address itself', ['198.51.100.1'], '198.51.100.1', true],
  ['its neighbour', ['198.51.100.1'], '198.51.100.2', false],
  ['/32 is one address', ['198.51.100.1/32'], '198.51.100.1', true],
  ['/32 is no second address', ['198.51.100.1/32'], '198.51.100.0', false],
  ['/24, first', ['198.51.100.0/24'], '198.51.100.0', true],
  ['/24, last', ['198.51.100.0/24'], '198.51.100.255', true],
  ['/24, beyond', ['198.51.100.0/24'], '198.51.101.0', false],
  ['/0 is every address of its family', ['0.0.0.0/0'], '203.0.113.1', true],
  ['/0 is no address of the other family', ['0.0.0.0/0'], '2001:db8::1', false],
  ['IPv6 /0 is no IPv4 address', ['::/0'], '203.0.113.1', false],
  ['IPv6 /0 is every IPv6 address', ['::/0'], '2001:db8::1', true],
  ['IPv6 /0 is no mapped address', ['::/0'], '::ffff:203.0.113.1', false],
  ['a wide IPv6 range is no IPv4 address', ['::/8'], '10.0.0.1', false],
  ['every mapped address is every IPv4 address', ['::ffff:0:0/96'], '203.0.113.1', true],
  ['every mapped address is no IPv6 address', ['::ffff:0:0/96'], '2001:db8::1', false],
  ['a mapped range of a whole class', ['::ffff:10.0.0.0/104'], '10.9.9.9', true],
  ['beyond a mapped range of a whole class', ['::ffff:10.0.0.0/104'], '11.0.0.1', false],
  ['a range that begins before the mapped ones', ['::ffff:0:0/90'], '203.0.113.1', false],
  ['host bits are ignored', ['10.0.0.1/8'], '10.9.9.9', true],
  ['host bits of IPv6 are ignored', ['2001:db8::1/32'], '2001:db8:9::9', true],
  ['an entry with a zone', ['fe80::1%eth0'], 'fe80::1', false],
  ['an address with a zone', ['fe80::/10'], 'fe80::1%eth0', false],
  ['a link-local range', ['fe80::/10'], 'fe80::1', true],
  ['an entry with a leading zero', ['010.0.0.1'], '10.0.0.1', false],
  ['an address with a leading zero', ['10.0.0.1'], '10.0.0.01', false],
  ['a prefix with a leading zero', ['10.0.0.0/08'], '10.0.0.1', false],
  ['a short form', ['10/8'], '10.0.0.1', false],
  ['an entry with spaces', [' 10.0.0.1', '10.0.0.1 ', '10.0.0.0 /8'], '10.0.0.1', false],
  ['a mapped visitor', ['198.51.100.1'], '::ffff:198.51.100.1', true],
  ['a mapped entry', ['::ffff:198.51.100.1'], '198.51.100.1', true],
  ['a mapped range', ['::ffff:198.51.100.0/120'], '198.51.100.77', true],
  ['beyond a mapped range', ['::ffff:198.51.100.0/120'], '198.51.101.77', false],
  ['/128', ['2001:db8::1/128'], '2001:db8::1', true],
  ['/128, another spelling', ['2001:DB8:0::1/128'], '2001:db8:0:0:0:0:0:1', true],
  ['/128, its neighbour', ['2001:db8::1/128'], '2001:db8::2', false],
  ['/48', ['2001:db8:7::/48'], '2001:db8:7:ffff::1', true],
  ['beyond /48', ['2001:db8:7::/48'], '2001:db8:8::1', false],
  ['any entry is enough', ['192.0.2.1', '2001:db8::/32', '198.51.100.0/24'], '198.51.100.9', true],
  ['a broken entry lets no caller in', ['198.51.100.300'], '198.51.100.30', false],
  ['a broken entry does not spoil the others', ['nonsense', '198.51.100.1'], '198.51.100.1', true],
  ['an address that is none', ['0.0.0.0/0'], '198.51.100', false],
]

test.each(visits)('whitelist: %s', (_name, whitelist, address, expected) => {
  expect(isAddressAllowed(whitelist, address)).toBe(expected)
})

test('the database decides every whitelist alike', async () => {
  const db = await createTestDatabase()
  const answers = await Promise.all(
    visits.map(([, whitelist, address]) =>
      db.owner.query<{ allowed: boolean }>('SELECT whitelist_allows($1, $2) AS allowed', [
        whitelist,
        address,
      ]),
    ),
  )
  const named = visits.map(([name], n) => [name, answers[n]?.rows[0]?.allowed])
  expect(named).toEqual(visits.map(([name, , , expected]) => [name, expected]))
  await db.drop()
})

test('every spelling of an entry lets in the same addresses by both rules', async () => {
  const addresses = ['0.0.0.0', '10.0.0.1', '127.0.0.1', '203.0.113.1', '255.255.255.255']
  const others = ['::', '::1', '::10.0.0.1', '::ffff:10.0.0.1', '::fffe:10.0.0.1', 'fe80::1', '2001:db8::1']
  const starts = [
    ...addresses,
    ...others,
    '::0001',
    '::FFFF:A00:1',
    '::ffff:010.0.0.1',
    '10',
    '10.0',
    '1e1',
    '',
  ]
  const prefixes = ['', '/', '/0', '/8', '/08', '/31', '/32', '/33', '/90', '/96', '/104', '/128', '/129']
  const entries = starts.flatMap((start) =>
    prefixes.flatMap((prefix) => [`${start}${prefix}`, ` ${start}${prefix}`, `${start}${prefix}\n`]),
  )
  const pairs = entries.flatMap((entry) => [...addresses, ...others].map((address) => ({ entry, address })))
  const db = await createTestDatabase()
  const { rows } = await db.owner.query<{ entry: string; address: string; allowed: boolean | null }>(
    `SELECT entry, address, whitelist_allows(ARRAY[entry], address) AS allowed
     FROM unnest($1::text[], $2::text[]) AS pair (entry, address)`,
    [pairs.map(({ entry }) => entry), pairs.map(({ address }) => address)],
  )
  const differing = rows.filter(
    ({ entry, address, allowed }) => isAddressAllowed([entry], address) !== allowed,
  )
  expect(rows).toHaveLength(pairs.length)
  expect(differing).toEqual([])
  await db.drop()
})

test('a range lies within a range of its own family only', () => {
  expect(isWithin('10.1.0.0/16', ['10.0.0.0/8'])).toBe(true)
  expect(isWithin('::ffff:10.1.0.0/112', ['10.0.0.0/8'])).toBe(true)
  expect(isWithin('10.0.0.0/8', ['::/0'])).toBe(false)
  expect(isWithin('2001:db8::/32', ['0.0.0.0/0'])).toBe(false)
})

test.each([
  ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
  ['::/0', '::/0'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:DB8:0::/32', '2001:db8::/32'],
])('the entry %s is kept as %s', (given, entry) => {
  expect(canonicalEntry(given)).toEqual({ entry })
})

test.each(['10.0.0.1/8', '::1/0', 'fe80::1%eth0', '010.0.0.1', '10.0.0.0/08', '::ffff:0:0/90', '10/8'])(
  'the entry %s is refused',
  (given) => expect(canonicalEntry(given)).toEqual({ problem: expect.stringMatching(/^must be /) }),
)

test('networks are read in their canonical form', () => {
  expect(parseNetwork('192.0.2.0/24')).toEqual({ address: '192.0.2.0', family: 'ipv4', prefix: 24 })
  expect(parseNetwork('2001:DB8::/32')).toEqual({ address: '2001:db8::', family: 'ipv6', prefix: 32 })
  expect(parseNetwork('::ffff:192.0.2.1')).toEqual({ address: '192.0.2.1', family: 'ipv4', prefix: 32 })
  const broken = [
    '',
    '/8',
    '192.0.2.1/33',
    '192.0.2.1/-1',
    '192.0.2.1/',
    '::1/129',
    '::ffff:192.0.2.0/24',
    '1.2.3.4/8/8',
  ]
  expect(broken.map(parseNetwork)).toEqual(broken.map(() => null))
})

test('every notation of an address has one form', () => {
  const spellings = ['2001:db8::1', '2001:DB8::1', '2001:0db8:0:0:0:0:0:1', '2001:db8:0::0:1']
  expect(new Set(spellings.map(canonicalAddress))).toEqual(new Set(['2001:db8::1']))
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  [null, 'unknown'],
])('the address %s counts as %s', (address, block) => {
  expect(addressBlock(address)).toBe(block)
})
