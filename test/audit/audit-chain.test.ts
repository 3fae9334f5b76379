import { createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  chain,
  chainStart,
  type ChainedEntry,
  type ChainFault,
  follow,
  type Head,
  checkEnd,
  type Link,
  proveHead,
  type LinkedEntry,
} from '../../src/audit/audit-chain.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'

const random = randomFrom(seed)
const below = (bound: number) => Math.floor(random() * bound)
const thirtyTwoBytes = () => Buffer.from(Array.from({ length: 32 }, () => below(256)))

const key = createSecretKey(thirtyTwoBytes())
const merchantId = 7

function entryNo(n: number): ChainedEntry {
  return {
    id: BigInt(n * 3),
    merchantId,
    actor: `member:${n % 4}`,
    operation: 'updateSettings',
    target: `merchant:${merchantId}`,
    address: n % 5 === 0 ? null : `192.0.2.${n}`,
    requestId: '0190a0b0-0000-7000-8000-000000000000',
    channel: 'rest',
    before: n % 3 === 0 ? null : `{"locale": "${n}"}`,
    after: `{"locale": "${n + 1}"}`,
    atMs: BigInt(1_790_000_000_000 + n),
  }
}

function chainedBy(link: Link, entry: ChainedEntry): LinkedEntry {
  return { ...entry, ...link, entryId: entry.id }
}

function sealed(length: number): { entries: LinkedEntry[]; head: Head } {
  let link = chainStart
  const entries: LinkedEntry[] = []
  for (let n = 1; n <= length; n += 1) {
    link = chain(link, entryNo(n))
    entries.push(chainedBy(link, entryNo(n)))
  }
  return { entries, head: { ...link, proof: proveHead(key, merchantId, link) } }
}

/** As `verifyAuditLog` reads them: in the order of their places. */
function faultOf(entries: readonly LinkedEntry[], head: Head | null): ChainFault | null {
  const inOrder = entries.toSorted((a, b) => Number(a.position - b.position))
  const { link, fault } = follow(chainStart, inOrder)
  return fault ?? checkEnd(key, merchantId, link, head)
}

/** Another value of the same kind. */
function other(value: unknown): unknown {
  if (typeof value === 'bigint') return value + BigInt(1 + below(8))
  if (typeof value === 'number') return value + 1
  if (value instanceof Uint8Array) return thirtyTwoBytes()
  return value === null ? '' : `${(value as string).slice(0, -1)}~`
}

/** Each tampers with a copy of the rows, and says at which place it shows first. */
const tampering: Record<string, (rows: LinkedEntry[], at: number) => number> = {
  edit: (rows, at) => {
    const row = rows[at] as LinkedEntry & Record<string, unknown>
    const names = Object.keys(entryNo(1)).concat('hash')
    const name = names[below(names.length)] ?? ''
    Object.assign(row, { [name]: other(row[name]) })
    return at + 1
  },
  'delete an entry': (rows, at) => {
    for (const name of Object.keys(entryNo(1))) Object.assign(rows[at] as LinkedEntry, { [name]: null })
    return at + 1
  },
  delete: (rows, at) => {
    rows.splice(at, 1)
    return at + 1
  },
  insert: (rows, at) => {
    const link = chain(rows[at - 1] ?? chainStart, entryNo(900))
    for (const row of rows.slice(at)) row.position += 1n
    rows.splice(at, 0, chainedBy(link, entryNo(900)))
    return at + 2
  },
  repeat: (rows, at) => {
    rows.splice(at, 0, { ...(rows[at] as LinkedEntry) })
    return at + 1
  },
  swap: (rows, at) => {
    const [one, two] = [rows[at], rows[(at + 1) % rows.length]] as [LinkedEntry, LinkedEntry]
    ;[one.position, two.position] = [two.position, one.position]
    return Math.min(Number(one.position), Number(two.position))
  },
  'swap contents': (rows, at) => {
    const next = (at + 1) % rows.length
    const [one, two] = [rows[at], rows[next]] as [LinkedEntry, LinkedEntry]
    rows[at] = { ...two, position: one.position, hash: one.hash }
    rows[next] = { ...one, position: two.position, hash: two.hash }
    return Math.min(at, next) + 1
  },
  truncate: (rows, at) => {
    rows.length = at
    return at + 1
  },
}

test.each(Object.entries(tampering))(
  'every %s is found, at the first entry that shows it',
  (_name, tamper) => {
    const { entries, head } = sealed(30)
    expect(faultOf(entries, head)).toBeNull()
    for (let turn = 0; turn < 100; turn += 1) {
      const rows = entries.map((entry) => ({ ...entry }))
      const place = tamper(rows, below(rows.length))
      expect(faultOf(rows, head)).toMatchObject({ position: BigInt(place) })
    }
  },
)

test('a rewritten chain does not fit its head, and no other role writes a head', () => {
  const { head } = sealed(30)
  let link = chainStart
  const anew = Array.from({ length: 30 }, (_, n) => {
    const entry = { ...entryNo(n + 1), actor: 'member:99' }
    link = chain(link, entry)
    return chainedBy(link, entry)
  })
  expect(faultOf(anew, head)).toMatchObject({ position: 30n, problem: 'altered' })
  const forged = { ...link, proof: proveHead(createSecretKey(thirtyTwoBytes()), merchantId, link) }
  expect(faultOf(anew, forged)).toMatchObject({ problem: 'head forged' })
  expect(faultOf(anew, { ...link, proof: head.proof })).toMatchObject({ problem: 'head forged' })
  expect(faultOf(anew, null)).toMatchObject({ position: 1n, problem: 'beyond the head' })
  const stolen = { ...link, proof: proveHead(key, merchantId + 1, link) }
  expect(faultOf(anew, stolen)).toMatchObject({ problem: 'head forged' })
})

test('an entry beyond the head is found, and an empty log is right', () => {
  const { entries, head } = sealed(3)
  const extra = chainedBy(chain(head, entryNo(4)), entryNo(4))
  expect(faultOf([...entries, extra], head)).toMatchObject({ position: 4n, problem: 'beyond the head' })
  expect(faultOf([], null)).toBeNull()
  expect(faultOf([], head)).toMatchObject({ position: 1n, problem: 'truncated' })
})
