import { expect, test } from 'vitest'
import { invariants } from './invariants.ts'
import type { Snapshot, TransactionRow } from './snapshot.ts'

// Each invariant finds the fault that it is there for, and none in right books. `planted.soak.ts` finds one
// by real kills.

const paid: TransactionRow = {
  kind: 'pay',
  id: 1,
  merchant_id: 7,
  reference: 'run-1',
  amount: 5_000,
  customer_phone: '+22370000001',
  payment_method: 'OperatorA',
  status: 'success',
  settled_amount: 5_000,
  refunded: 0,
  identity: 'order-1',
  attempt: 1,
  next_check: false,
}
const order = {
  kind: 'transaction',
  reference: 'run-1',
  merchantId: 7,
  amount: 5_000,
  phone: '+22370000001',
  operator: 'OperatorA',
} as const
const execution = { operator: 'OperatorA', state: 'completed', amount: 5_000, isOut: false } as const
const entry = {
  merchant_id: 7,
  origin: 'transaction:1',
  step: 'credit',
  debit: 'clearing_operator_a',
  credit: 'available',
  amount: 5_000,
}
const event = { merchant_id: 7, transaction_id: 1, reference: 'run-1' }
const begun = { ...event, position: 1, type: 'payment_pending', status: 'pending' }
const received = { ...event, position: 2, type: 'payment_received', status: 'success' }
const heard = [begun, received].map(({ position, reference, type, status }) => ({
  sequence: position,
  reference,
  type: type.toUpperCase(),
  status: status.toUpperCase(),
}))
const batch = {
  id: 3,
  status: 'completed',
  started: true,
  ended: true,
  counted: '2 0 0',
  found: '2 0 0',
  size: 2,
  done: 1,
}
const acknowledged = { id: 3, merchantId: 7, count: 2, began: true, cancelled: false }

/** The books of one paid collection and one batch that ended, after the run. */
const right: Snapshot = {
  acknowledgements: [{ order, id: 1, status: 'success' }],
  batchAcknowledgements: [acknowledged],
  readers: [{ name: 'reader', merchantId: 7, recorded: heard }],
  executed: ['order-1'],
  transactions: [paid],
  payouts: [],
  recipients: [],
  batches: [batch],
  entries: [entry],
  balances: [{ merchant_id: 7, available: 5_000, reserved: 0 }],
  heads: [{ merchant_id: 7, position: 2 }],
  events: [begun, received],
  overfullLinks: [],
  ledgerProblems: [],
  operators: new Map([['order-1', [execution]]]),
}

const complaintsOf = (snapshot: Snapshot, isOver = true) =>
  Object.keys(invariants).filter((name) => (invariants[name]?.(snapshot, isOver) ?? []).length > 0)

test('right books have no complaint, during the run and after it', () => {
  expect([complaintsOf(right), complaintsOf(right, false)]).toEqual([[], []])
})

const faults: Readonly<Record<string, readonly Partial<Snapshot>[]>> = {
  'an acknowledged order is on record, as the client asked for it': [
    { transactions: [] },
    { transactions: [{ ...paid, amount: 4_999 }] },
    { acknowledgements: [{ order, id: null, status: 'refused' }] },
  ],
  'one transaction, and one payout, per reference of a merchant': [
    { transactions: [paid, { ...paid, id: 2 }] },
    { payouts: [1, 2].map((id) => ({ ...paid, kind: 'payout' as const, id })) },
  ],
  'the ledger adds up': [
    { ledgerProblems: ['a fault'] },
    { balances: [{ merchant_id: 7, available: 5_001, reserved: 0 }] },
    { entries: [] },
  ],
  'every step of a transaction happens once': [{ entries: [entry, entry] }],
  'an operator executes each order at most once': [
    { operators: new Map([['order-1', [execution, execution]]]) },
  ],
  'an operator knows no order that is not on record': [{ executed: ['order-1', 'order-2'] }],
  'a final status agrees with the operator': [
    { operators: new Map() },
    { transactions: [{ ...paid, status: 'failed' }] },
    { transactions: [{ ...paid, status: 'pending' }] },
    { operators: new Map([['order-1', [{ ...execution, amount: 4_999 }]]]) },
  ],
  'each outcome is emitted once': [
    { events: [begun] },
    { events: [begun, received, { ...received, position: 3 }] },
  ],
  'no balance below its floor, and nothing reserved once all is over': [
    { balances: [{ merchant_id: 7, available: -1, reserved: 0 }] },
    { balances: [{ merchant_id: 7, available: 5_000, reserved: 1 }] },
  ],
  'a batch is as acknowledged, counts its recipients right, and ends once': [
    { batches: [] },
    { batches: [{ ...batch, found: '1 1 0' }] },
    { batches: [{ ...batch, done: 2 }] },
    { batches: [{ ...batch, size: 1 }] },
  ],
  'an answered status is never taken back': [
    { transactions: [{ ...paid, status: 'failed' }] },
    { acknowledgements: [{ order, id: 1, status: 'failed' }] },
  ],
  'the positions of a merchant are 1, 2, 3, ...': [
    { events: [begun, { ...received, position: 3 }], heads: [{ merchant_id: 7, position: 3 }] },
    { events: [begun, { ...received, position: null }] },
    { heads: [{ merchant_id: 7, position: 3 }] },
  ],
  'every reader had every event once, in order': [
    { readers: [{ name: 'reader', merchantId: 7, recorded: heard.slice(0, 1) }] },
    { readers: [{ name: 'reader', merchantId: 7, recorded: heard.toReversed() }] },
    { readers: [{ name: 'reader', merchantId: 7, recorded: [...heard, ...heard.slice(1)] }] },
  ],
  'a link has no more attempts and payments than places': [
    { overfullLinks: [{ id: 9, places: 1, taken: 2 }] },
  ],
  'our clearing accounts are the operators’ books': [
    { entries: [{ ...entry, debit: 'clearing_operator_b' }] },
    { operators: new Map() },
  ],
}

test('every invariant has its faults', () => {
  expect(Object.keys(faults)).toEqual(Object.keys(invariants))
})

test.each(
  Object.entries(faults).flatMap(([name, all]) => all.map((fault, nth) => [name, nth + 1, fault] as const)),
)('%s: fault %i is found', (name, _nth, fault) => {
  expect(complaintsOf({ ...right, ...fault })).toContain(name)
})
