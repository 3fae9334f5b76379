import { describe, expect, test } from 'vitest'
import type { Evidence, InitiateOutcome, QueryOutcome } from '../../src/operators/operator.ts'
import {
  type Action,
  type Decision,
  decideAsked,
  decideSent,
  type DecisionInput,
} from '../../src/requests/decide.ts'
import { newRequest, type OpenRequest, type Subject } from '../../src/requests/open-request.ts'
import { subjects } from '../../src/resources/subjects.ts'

// Two tables list the action of every case. The first row that fits a case counts. `*` fits everything, and
// `a/b` fits both. The operator calls back and recognises a repeated call; no question was asked before.
// `close` records that no further question is asked. Log lines follow a semicolon, by their level;
// `unreached`: the operator did not answer.

/** Words of the tables that stand for several. */
const shortWords: Record<string, string> = {
  out: 'deposit/payout/recipient',
  bulk: 'payout/recipient',
  open: 'sending/unsent/accepted/doubt',
  unsure: 'sending/unsent/doubt',
  ended: 'refused/closed',
  old: 'waited/over/long over',
  late: 'over/long over',
}

/**
 * The action after a question, by the kind of payment, the recorded state, whether its last send was
 * rejected, and its age. `waited`: the time for a request that never left is over; `over`: the time of a
 * collection has ended; `long over`: it ended eight days ago.
 */
const askedTable = `
 for        | record   | away | age       | answer      | what is done
 recipient  | unsent   | *    | young     | not asked   | resend, or note nothing, in 2 s; unreached
 *          | unsent   | *    | young     | not asked   | resend, or nothing; unreached
 *          | unsent   | no   | *         | not asked   | give up: OPERATOR_UNAVAILABLE, or nothing; unreached
 *          | unsent   | yes  | *         | not asked   | give up: FLOAT_INSUFFICIENT, or nothing; unreached

 *          | settled  | *    | *         | reversed    | reverse
 *          | settled  | *    | *         | unreachable | watch in 2 s; unreached
 *          | settled  | *    | *         | refused     | watch no more; error
 *          | settled  | *    | *         | absent      | watch no more; error
 *          | settled  | *    | *         | *           | watch no more

 *          | *        | *    | *         | settled     | settle success, else close
 *          | *        | *    | *         | reversed    | settle success, then reverse, else close
 *          | ended    | *    | *         | refused     | close
 *          | open     | *    | *         | refused     | settle failed

 bulk       | open     | *    | waited    | unreachable | note nothing, in 3600 s; error, unreached
 *          | *        | *    | *         | unreachable | note nothing, in 2 s; unreached

 collection | open     | *    | late      | pending     | expire
 *          | ended    | *    | long over | pending     | close
 collection | *        | *    | young     | pending     | note accepted, in 60 s
 collection | *        | *    | waited    | pending     | note accepted, in 30 s
 collection | ended    | *    | over      | pending     | note accepted, in 3600 s
 bulk       | *        | *    | waited    | pending     | note accepted, in 3600 s
 out        | *        | *    | *         | pending     | note accepted, in 3 s

 collection | accepted | *    | late      | absent      | expire; warn
 collection | accepted | *    | waited    | absent      | note doubt, in 30 s; warn
 bulk       | accepted | *    | waited    | absent      | note doubt, in 3600 s; warn, error
 *          | accepted | *    | *         | absent      | note doubt, in 2 s; warn
 *          | ended    | yes  | old       | absent      | give up: FLOAT_INSUFFICIENT, or note doubt, no more
 collection | ended    | *    | old       | absent      | note doubt, no more
 *          | ended    | *    | *         | absent      | resend, or note doubt, no more
 *          | unsure   | *    | young     | absent      | resend, or note doubt, in 2 s
 collection | unsure   | yes  | waited    | absent      | give up: FLOAT_INSUFFICIENT, or note doubt, in 30 s
 collection | unsure   | yes  | late      | absent      | give up: FLOAT_INSUFFICIENT, or expire
 collection | unsure   | no   | waited    | absent      | note doubt, in 30 s
 collection | unsure   | no   | late      | absent      | expire
 deposit    | unsure   | yes  | waited    | absent      | give up: FLOAT_INSUFFICIENT, or note doubt, in 2 s
 deposit    | unsure   | no   | waited    | absent      | resend, or note doubt, in 2 s
 bulk       | unsure | yes | waited | absent | give up: FLOAT_INSUFFICIENT, or note doubt, in 3600 s; error
 bulk       | unsure   | no   | waited    | absent      | resend, or note doubt, in 3600 s; error
`

/**
 * The action after a send, by the kind of payment, the state before, whether its last send was rejected, its
 * age, and whether it is the first send.
 */
const sentTable = `
 for        | record  | away | age    | send   | answer     | what is done
 *          | *       | *    | *      | *      | settled    | settle success
 *          | *       | *    | *      | *      | refused    | settle failed
 *          | *       | *    | *      | *      | unknown    | note doubt, in 2 s; info

 *          | *       | *    | *      | *      | known      | note accepted, in 0 s
 collection | *       | *    | late   | *      | accepted   | note accepted, in 0 s
 collection | *       | *    | late   | *      | page       | note accepted, in 0 s, with its page
 collection | *       | *    | *      | *      | accepted   | note accepted, in 60 s
 collection | *       | *    | *      | *      | page       | note accepted, in 60 s, with its page
 out        | *       | *    | *      | *      | accepted   | note accepted, in 3 s
 out        | *       | *    | *      | *      | page       | note accepted, in 3 s, with its page

 *          | unsent  | *    | young  | *      | not sent   | note unsent, in 2 s; unreached
 *          | unsent  | *    | *      | *      | not sent   | note unsent, in 0 s; unreached
 *          | *       | *    | young  | first  | not sent   | note unsent, in 2 s; unreached
 *          | *       | *    | *      | first  | not sent   | note unsent, in 0 s; unreached
 *          | *       | *    | *      | second | not sent   | note doubt, in 2 s; unreached

 collection/deposit | * | no  | *    | *      | float empty | settle failed; error
 collection/deposit | * | yes | *    | *      | float empty | settle failed
 bulk       | unsent  | no   | *      | *      | float empty | note unsent, in 30 s; error
 bulk       | unsent  | yes  | *      | *      | float empty | note unsent, in 30 s
 bulk       | *       | no   | *      | first  | float empty | note unsent, in 30 s; error
 bulk       | *       | yes  | *      | first  | float empty | note unsent, in 30 s
 bulk       | *       | no   | *      | second | float empty | note doubt, in 30 s; error
 bulk       | *       | yes  | *      | second | float empty | note doubt, in 30 s
`

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const now = new Date('2026-01-31T10:00:00.000Z')

const evidence: Evidence = {
  operatorRef: 'OP-1',
  amount: 5_000n,
  settledAt: now,
  source: 'query',
  digest: 'd',
}
const refusal = { reason: 'PAYER_DECLINED', code: 'no' } as const
const handle = { correlationId: 'c', clientRef: 'c' }
const accepted = {
  kind: 'accepted',
  duplicate: false,
  handle,
  action: { type: 'push' },
  notify: 'callback',
} as const

const answers = {
  'not asked': null,
  pending: { kind: 'pending' },
  settled: { kind: 'settled', evidence },
  reversed: { kind: 'reversed', evidence, reversalRef: 'R' },
  refused: { kind: 'refused', refusal },
  absent: { kind: 'absent', asOf: now },
  unreachable: { kind: 'unreachable', cause: 'connect' },
} as const satisfies Record<QueryOutcome['kind'] | 'not asked', QueryOutcome | null>

const firstAnswers = {
  accepted,
  page: { ...accepted, action: { type: 'redirect', url: 'https://pay.example/7' } },
  known: { ...accepted, duplicate: true },
  settled: { kind: 'settled', handle, evidence },
  refused: { kind: 'refused', refusal },
  'not sent': { kind: 'not_sent', cause: 'connect' },
  'float empty': {
    kind: 'not_sent',
    cause: 'float_empty',
    refusal: { reason: 'FLOAT_INSUFFICIENT', code: 'f' },
  },
  unknown: { kind: 'unknown', cause: 'response_lost', handle },
} as const satisfies Record<string, InitiateOutcome>

const kinds = Object.keys(subjects) as Subject[]
const states = Object.keys({
  sending: true,
  unsent: true,
  accepted: true,
  doubt: true,
  settled: true,
  refused: true,
  closed: true,
} satisfies Record<OpenRequest['state'], true>) as OpenRequest['state'][]
const ages = ['young', 'waited', 'over', 'long over'] as const
type Age = (typeof ages)[number]

/** A case that has ended has no end before it; only a collection has one while it is open. */
function exists(subject: Subject, state: OpenRequest['state'], age: Age): boolean {
  if (age === 'over') return subject === 'collection'
  const hasEnded = state === 'settled' || state === 'refused' || state === 'closed'
  return age !== 'long over' || subject === 'collection' || hasEnded
}

const waitedMs = { collection: 70 * second, deposit: 20 * second, payout: 25 * hour, recipient: 25 * hour }

function known(
  subject: Subject,
  state: OpenRequest['state'],
  age: Age,
  more: Partial<OpenRequest>,
): DecisionInput {
  const rules = subjects[subject]
  const overMs = age === 'over' ? hour : 8 * day
  const isOver = age === 'over' || age === 'long over'
  const ageMs = age === 'young' ? 5 * second : isOver ? day + overMs : waitedMs[subject]
  const isCollection = subject === 'collection'
  const status = { settled: rules.success, refused: 'failed', closed: isCollection ? 'expired' : 'failed' }
  const row = { id: 7n, merchantId: 1, subjectId: 9n, provider: 'OperatorA', amount: 5_000n } as const
  const recorded = { ...row, subject, phone: '+22370000001', correlationId: 'c', request: {} }
  const request: OpenRequest = {
    ...newRequest({ ...recorded, status: rules.open, leftMs: isCollection ? day - ageMs : null }),
    state,
    ageMs,
    sinceOverMs: isOver ? overMs : isCollection ? ageMs - day : 0,
    sinceSettledMs: ageMs,
    sinceSentMs: ageMs,
    ...(state in status && { status: status[state as keyof typeof status] }),
    ...more,
  }
  const operator = { callbacks: 'unsigned', createIsIdempotent: true, disburseIsSynchronous: false } as const
  return { request, rules, operator, now, random: 0.5 }
}

/** A decision in the words of the tables. */
function spoken({ action, reached, log }: Decision): string {
  const also = 'otherwise' in action ? action.otherwise.log : []
  const notes = [...[...log, ...also].map(({ level }) => level), ...(reached ? [] : ['unreached'])]
  return [spokenAction(action), ...(notes.length > 0 ? [notes.join(', ')] : [])].join('; ')
}

function spokenAction(action: Action): string {
  const inTime = (ms: number | null) => (ms === null ? 'no more' : `in ${ms / second} s`)
  switch (action.do) {
    case 'record': {
      if (action.state === 'accepted' && action.nextCheckMs === null) return 'close'
      const page = action.paymentUrl === null ? '' : ', with its page'
      return `note ${action.state ?? 'nothing'}, ${inTime(action.nextCheckMs)}${page}`
    }
    case 'watch':
      return `watch ${inTime(action.nextMs)}`
    case 'settle': {
      const { finalOutcome, ifPaid, ifNot } = action
      const then = ifPaid ? `, then ${spokenAction(ifPaid)}` : ''
      return `settle ${finalOutcome.status}${then}${ifNot ? `, else ${spokenAction(ifNot)}` : ''}`
    }
    case 'resend':
      return `resend, or ${spokenAction(action.otherwise.action)}`
    case 'give up':
      return `give up: ${action.refusal.reason}, or ${spokenAction(action.otherwise.action)}`
    case 'nothing':
    case 'expire':
    case 'reverse':
      return action.do
  }
}

interface Row {
  /** The values that each column fits; null: every value. */
  fits: (ReadonlySet<string> | null)[]
  done: string
  line: string
}

function rowsOf(table: string): Row[] {
  const [, ...lines] = table.split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => {
    const cells = line.split('|').map((cell) => cell.trim())
    const done = cells.pop() ?? ''
    const fits = cells.map((cell) => {
      const words = cell.split('/').flatMap((word) => (shortWords[word] ?? word).split('/'))
      return cell === '*' ? null : new Set(words)
    })
    return { fits, done, line }
  })
}

interface Case {
  words: readonly string[]
  decision: Decision
}

/** Compares each case with the first row that fits. @returns what differs, and rows that no case needs */
function compare(table: string, cases: readonly Case[]): string[] {
  const rows = rowsOf(table)
  const used = new Set<Row>()
  const wrong = cases.flatMap(({ words, decision }) => {
    const row = rows.find(({ fits }) => fits.every((set, column) => !set || set.has(words[column] ?? '')))
    if (row) used.add(row)
    const done = spoken(decision)
    return row?.done === done ? [] : [`${words.join(' | ')}: ${done}, not ${row?.done ?? 'in the table'}`]
  })
  return [...wrong, ...rows.filter((row) => !used.has(row)).map(({ line }) => `no case: ${line.trim()}`)]
}

/** Every kind of subject, state, turned away or not, and age. */
const situations = kinds.flatMap((subject) =>
  states.flatMap((state) =>
    (['no', 'yes'] as const).flatMap((away) =>
      ages
        .filter((age) => exists(subject, state, age))
        .map((age) => ({
          words: [subject, state, away, age] as const,
          of: (more: Partial<OpenRequest> = {}) =>
            known(subject, state, age, {
              rejectedReason: away === 'yes' ? 'FLOAT_INSUFFICIENT' : null,
              ...more,
            }),
        })),
    ),
  ),
)

describe('the action that is decided', () => {
  test('after a question, in every case', () => {
    const cases = situations.flatMap(({ words, of }) =>
      Object.entries(answers)
        // Only what never left is not asked about.
        .filter(([answer]) => answer !== 'not asked' || words[1] === 'unsent')
        .map(([answer, outcome]) => ({ words: [...words, answer], decision: decideAsked(of(), outcome) })),
    )
    expect(compare(askedTable, cases)).toEqual([])
    expect(cases.length).toBeGreaterThan(900)
  })

  test('after a send, in every case', () => {
    const cases = situations.flatMap(({ words, of }) =>
      [1, 2].flatMap((attempt) =>
        Object.entries(firstAnswers).map(([answer, outcome]) => ({
          words: [...words, attempt === 1 ? 'first' : 'second', answer],
          decision: decideSent(of({ attempt }), outcome),
        })),
      ),
    )
    expect(compare(sentTable, cases)).toEqual([])
    expect(cases.length).toBeGreaterThan(2_000)
  })
})

/** One open request in doubt, of five seconds, with these changes. */
function like(
  subject: Subject,
  more: Partial<OpenRequest> = {},
  operator: Partial<DecisionInput['operator']> = {},
) {
  const it = known(subject, 'doubt', 'young', more)
  return { ...it, operator: { ...it.operator, ...operator } }
}

/** An operator that tells nothing by itself and does not recognise a repeated call. */
const mute = { callbacks: 'none', createIsIdempotent: false } as const
const atOnce = { disburseIsSynchronous: true }
const saying = (amount: bigint) => ({ ...answers.settled, evidence: { ...evidence, amount } })
const paidAgo = (sinceSettledMs: number, more: Partial<OpenRequest> = {}) =>
  ({ state: 'settled', status: 'success', sinceSettledMs, ...more }) as const
const { pending, settled, absent, refused, unreachable } = answers
const soon = { kind: 'pending', expiresAt: new Date(now.getTime() + 7 * second) } as const
const withdrawn = { state: 'unsent', cancelRequested: true } as const
const approved = { state: 'unsent', isApproved: true, ageMs: hour } as const
const takenBack = { claimed: 'reversed', sinceNotifiedMs: 5 * second } as const

test.each<[what: string, DecisionInput, QueryOutcome | null, done: string]>([
  ['of no record, never sent twice', like('payout', {}, mute), absent, 'note doubt, in 2 s'],
  ['lost, batch ends', like('recipient', { cancelRequested: true }), absent, 'resend, or note doubt, in 2 s'],
  ['open, asked often', like('collection', {}, mute), pending, 'note accepted, in 3 s'],
  ['open, older', like('collection', { ageMs: minute }, mute), pending, 'note accepted, in 15 s'],
  ['open, sent long ago', like('payout', { sinceSentMs: minute }), pending, 'note accepted, in 60 s'],
  ['open, no callback', like('payout', { sinceSentMs: minute }, atOnce), pending, 'note accepted, in 3 s'],
  ['open, wants a pause', like('payout'), { ...pending, pollAfterMs: minute }, 'note accepted, in 60 s'],
  ['open, its prompt ends', like('collection'), soon, 'note accepted, in 8 s'],
  ['paid, watched', like('collection', paidAgo(5 * second), mute), settled, 'watch in 55 s'],
  ['paid, watched long enough', like('collection', paidAgo(2 * day), mute), settled, 'watch no more'],
  ['paid, told otherwise', like('collection', paidAgo(2 * day, takenBack)), settled, 'watch in 55 s; warn'],
  ['paid, more than asked', like('payout'), saying(6_000n), 'settle success, else close; error'],
  ['paid, less than asked', like('payout'), saying(4_000n), 'settle success, else close; error'],
  ['refused, told otherwise', like('payout', { claimed: 'settled' }), refused, 'settle failed; warn'],
  ['refused, told the same', like('payout', { claimed: 'refused' }), refused, 'settle failed'],
  [
    'out of reach for a minute',
    like('payout'),
    { ...unreachable, retryAfterMs: minute },
    'note nothing, in 60 s; unreached',
  ],
  ['unreadable', like('payout'), { ...unreachable, cause: 'unreadable_amount' }, 'note nothing, in 2 s'],
  ['of another', like('payout'), { ...unreachable, cause: 'other_payment' }, 'note nothing, in 2 s'],
  [
    'not asked, withdrawn',
    like('recipient', withdrawn),
    null,
    'give up: OPERATOR_UNAVAILABLE, or nothing; unreached',
  ],
  ['not asked, approved by people', like('deposit', approved), null, 'resend, or nothing; unreached'],
])('a question: %s', (_what, it, outcome, done) => {
  expect(spoken(decideAsked(it, outcome))).toBe(done)
})

test('the last question that an operator allows is kept for the end of a collection', () => {
  const left = { handle: { ...handle, pollsLeft: 2 } }
  const { action } = decideAsked(like('collection', left), pending)
  expect(action).toMatchObject({ do: 'record', handle: { pollsLeft: 1 }, nextCheckMs: day - 5 * second })
})

test('an outcome names the send, or the question, that it answers', () => {
  const it = like('deposit', { attempt: 3, checkCount: 4 })
  expect(decideSent(it, firstAnswers.refused).action).toMatchObject({ finalOutcome: { attempt: 3 } })
  expect(decideAsked(it, settled).action).toMatchObject({ finalOutcome: { question: 4, watchMs: null } })
  expect(decideAsked(it, answers.reversed).action).toMatchObject({
    finalOutcome: { question: 4, watchMs: 0 },
  })
  expect(decideAsked(it, refused).action).not.toHaveProperty('ending.attempt')
})
