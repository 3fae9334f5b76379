import type { Mutant } from '../mutant.ts'

/** What operators are asked, and what their word counts. */
export const operatorsMutants: readonly Mutant[] = [
  {
    name: 'more is credited than was asked',
    file: 'settle_many()',
    find: 'least(a.amount, t.amount)',
    replace: 'a.amount',
    test: 'ledger/excess.test.ts',
    finds: 'an excess of another operator',
  },
  {
    name: 'what was paid beyond the amount is booked nowhere',
    file: 'settle_many()',
    find: "'unallocated'::ledger_account, c.excess)",
    replace: "'unallocated'::ledger_account, 0::bigint)",
    test: 'ledger/excess.test.ts',
    finds: 'an excess of another operator',
  },
  {
    name: 'an excess is credited at each decision',
    file: 'decide_excess()',
    find: "WHERE x.id = exception_id AND x.state = 'open' RETURNING",
    replace: 'WHERE x.id = exception_id RETURNING',
    test: 'ledger/excess.test.ts',
    finds: 'that it is the merchant’s: credited once, however often at the same moment',
  },
  {
    name: 'an open excess stays when its payment is reversed',
    file: 'reverse_many()',
    find: "'unallocated'::ledger_account, c.unallocated)",
    replace: "'unallocated'::ledger_account, 0::bigint)",
    test: 'ledger/excess.test.ts',
    finds: 'at the moment when a person credits it: either way nothing is left over',
  },
  {
    name: 'a credited excess stays when its payment is reversed',
    file: 'reverse_many()',
    find: "CASE x.state WHEN 'credited' THEN x.said_amount - x.asked_amount ELSE 0 END AS amount",
    replace: '0 AS amount',
    test: 'ledger/excess.test.ts',
    finds: 'after its excess was credited: the merchant gives both back',
  },
  {
    name: 'an amount has no upper bound',
    file: 'src/operators/wire-record.ts',
    find: 'amount > 0n && amount <= movedAmountMax ? amount',
    replace: 'amount > 0n ? amount',
    test: 'operators/amounts.test.ts',
    finds: 'is unreadable beyond, and calls somebody',
  },
  {
    name: 'a payment of nothing counts',
    file: 'src/operators/wire-record.ts',
    find: 'amount !== undefined && amount > 0n &&',
    replace: 'amount !== undefined &&',
    test: 'operators/amounts.test.ts',
    finds: 'is unreadable beyond, and calls somebody',
  },
  {
    name: 'amounts are read beyond what JSON holds',
    file: 'src/operators/wire-record.ts',
    find: '/^(\\d{1,16})(?:\\.0{1,4})?$/',
    replace: '/^(\\d{1,16})(?:\\.\\d{1,4})?$/',
    test: 'operators/amounts.test.ts',
    finds: 'a statement with such a line is unreadable as a whole',
  },
  {
    name: 'a statement may name any amount',
    file: 'src/operators/statement.ts',
    find: 'amount > 0n && amount <= movedAmountMax ? amount',
    replace: 'amount >= 0n ? amount',
    test: 'operators/amounts.test.ts',
    finds: 'a statement with such a line is unreadable as a whole',
  },
  {
    name: 'an amount that cannot be read opens the circuit',
    file: 'src/operators/circuit.ts',
    find: "  'unreadable_amount',\n",
    replace: '',
    test: 'operators/circuit.test.ts',
    finds: 'is an answer',
  },
  {
    name: 'a circuit never opens',
    file: 'src/operators/circuit.ts',
    find: 'const failuresInRowMax = 5',
    replace: 'const failuresInRowMax = 5_000',
    test: 'operators/circuit.test.ts',
    finds: 'bad probes double the pause up to two minutes',
  },
  {
    name: 'accepted, then absent: sent again',
    file: 'src/resources/settlement.ts',
    find: "      if (request.state !== 'accepted')\n",
    replace: "      if (request.state !== 'settled')\n",
    test: 'resources/accepted-then-absent.test.ts',
    finds: 'accepted, then absent: not sent again',
  },
  {
    name: 'giving up names no attempt',
    file: 'src/resources/sending.ts',
    find:
      "code: 'not_sent',\n" +
      "        message: 'The operator could not be reached.',\n" +
      '      }\n' +
      "  const failed = { status: 'failed', source: 'service', refusal, attempt } as const",
    replace:
      "code: 'not_sent',\n" +
      "        message: 'The operator could not be reached.',\n" +
      '      }\n' +
      "  const failed = { status: 'failed', source: 'service', refusal } as const",
    test: 'resources/overtaken.test.ts',
    finds: 'given up too late: it waits for the second',
  },
  {
    name: 'a callback during a note is lost',
    file: 'src/operators/requests.ts',
    find:
      '              WHEN r.next_check_at <= service_now() + (clock_timestamp() - now()) THEN ' +
      'r.next_check_at\n' +
      '              -- Over',
    replace: '              -- Over',
    test: 'resources/settlement-callback.test.ts',
    finds: 'a callback that overtakes a note that waits is not forgotten',
  },
  {
    name: 'a callback is found by its id alone',
    file: 'src/operators/callback-address.ts',
    find: 'presented.length === expected.length && timingSafeEqual(presented, expected) ? id : null',
    replace: 'presented.length > 0 && expected.length > 0 ? id : null',
    test: 'operators/callbacks.test.ts',
    finds: 'to an address that we never gave out is rejected',
  },
  {
    name: 'a callback is accepted by the length of its secret',
    file: 'src/operators/callback-address.ts',
    find: 'timingSafeEqual(presented, expected) ? id : null',
    replace: 'expected.length > 0 ? id : null',
    test: 'operators/callbacks.test.ts',
    finds: 'to an address that we never gave out is rejected',
  },
  {
    name: 'collections and payouts share identities',
    file: 'src/access/operator-identities.ts',
    find: "'operator-identity:1', merchantId, kind, by, name",
    replace: "'operator-identity:1', merchantId, by, name",
    test: 'access/operator-identities.test.ts',
    finds: 'the same source gives the same identity, a UUID of version 4',
  },
  {
    name: 'merchants share identities',
    file: 'src/access/operator-identities.ts',
    find: "'operator-identity:1', merchantId, kind, by, name",
    replace: "'operator-identity:1', kind, by, name",
    test: 'access/operator-identities.test.ts',
    finds: 'the same source gives the same identity, a UUID of version 4',
  },
  {
    name: 'a payout draws its identity when it is made',
    file: 'create_payouts()',
    find: 'coalesce(identity, gen_random_uuid())',
    replace: 'gen_random_uuid()',
    test: 'ledger/identities.test.ts',
    finds: 'requests take the identity of their rows',
  },
  {
    name: 'a request is sent inside its fence',
    file: 'src/operators/requests.ts',
    find: 'AND fence_until <= coalesce($4::timestamptz, now())',
    replace: 'AND coalesce($4::timestamptz, now()) IS NOT NULL',
    test: 'operators/requests.test.ts',
    finds: 'nobody sends before its end',
  },
  {
    name: 'an operation that the operator executed before a restore is sent',
    file: 'src/operators/requests.ts',
    find: "SET state = CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END",
    replace: "SET state = CASE WHEN orphan.found AND false THEN 'accepted' ELSE 'sending' END",
    test: 'ledger/identities.test.ts',
    finds: 'that becomes known later is neither sent again nor given up',
  },
]
