import { expect, test } from 'vitest'
import { type IdentitySource, operatorIdentity } from '../../src/identity/secrets/operator-identities.ts'
import { MasterSecret } from '../../src/identity/secrets/secrets.ts'
import { master } from '../kit/merchants.ts'

const source: IdentitySource = { merchantId: 7, kind: 'collect', by: 'reference', name: 'order-1' }

test('the same source gives the same identity, a UUID of version 4', () => {
  const identity = operatorIdentity(master, source)
  // Fixed here: a release that derives another identity would pay twice after a restore.
  expect(identity).toBe('b0b013a8-16f6-4003-b070-d204f1992e68')
  expect(operatorIdentity(new MasterSecret(Buffer.alloc(32, 7)), { ...source })).toBe(identity)
  for (let nth = 0; nth < 200; nth += 1)
    expect(operatorIdentity(master, { ...source, name: `order-${nth}` })).toMatch(
      /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
    )
})

test('another merchant, kind, source, name or master secret gives another identity', () => {
  const others = [
    source,
    { ...source, merchantId: 8 },
    { ...source, kind: 'disburse' },
    { ...source, kind: 'payout' },
    { ...source, by: 'request' },
    { ...source, name: 'order-2' },
    { ...source, name: 'Order-1' },
    { ...source, name: 'order-1"' },
    { ...source, merchantId: 71, name: 'order-1' },
    { ...source, merchantId: 7, name: '1order-1' },
    { merchantId: null, kind: 'collect', by: 'link', name: 'order-1' },
  ] as const satisfies IdentitySource[]
  const identities = others.map((each) => operatorIdentity(master, each))
  const elsewhere = operatorIdentity(new MasterSecret(Buffer.alloc(32, 8)), source)
  expect(new Set([...identities, elsewhere]).size).toBe(others.length + 1)
})
