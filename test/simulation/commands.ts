import fc from 'fast-check'
import { expect } from 'vitest'
import type { Services } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { resolveJob } from '../../src/requests/check-slots.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { checkPayment, paymentState } from '../../src/resources/transactions/check.ts'
import { collect } from '../../src/resources/transactions/collect.ts'
import { DomainError } from '../../src/shared/errors.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import type { ModelPayment, PaymentsModel } from './model.ts'
import { contextOf, type Treatment, treatments, type SimulationEnvironment } from './environment.ts'

/** The service under test, and the payments that one run made in it. */
export interface RealSystem {
  environment: SimulationEnvironment
  services: Services
  merchants: readonly SignedInMerchant[]
  /** The operator's names of the payments, in the order of the model's payments. */
  names: string[]
}

type Command = fc.AsyncCommand<PaymentsModel, RealSystem>
/** Acts on the service and applies the result to the model. */
type Act = (model: PaymentsModel, real: RealSystem) => Promise<void>

/** Makes a command that compares model and service at its end. */
function command(
  words: string,
  act: Act,
  check: (model: Pick<PaymentsModel, 'payments'>) => boolean = () => true,
): Command {
  return {
    check: (model) => check(model),
    async run(model, real) {
      real.environment.operator.log.length = 0
      await act(model, real)
      expect(real.environment.operator.failures.splice(0)).toEqual([])
      await compare(model, real)
    },
    toString: () => words,
  }
}

/** Makes a command about a payment that exists. */
function aboutItem(
  words: string,
  at: number,
  act: (payment: ModelPayment, name: string, model: PaymentsModel, real: RealSystem) => Promise<void>,
): Command {
  const pick = (model: Pick<PaymentsModel, 'payments'>) => at % model.payments.length
  return command(
    `${words}(${at})`,
    async (model, real) => {
      const [payment, name] = [model.payments[pick(model)], real.names[pick(model)]]
      if (!payment || name === undefined) throw new Error('no such payment')
      await act(payment, name, model, real)
    },
    (model) => model.payments.length > 0,
  )
}

const itemIndex = fc.nat(7)

/** A merchant asks a customer for money. */
export const begin: fc.Arbitrary<Command> = fc
  .record({
    merchantIndex: fc.nat(1),
    reference: fc.constantFrom('a', 'b', 'c', 'd'),
    amount: fc.integer({ min: 100, max: 9_999 }),
    treatment: fc.constantFrom(...treatments),
  })
  .map(collectCommand)

/** Makes a command likelier, because most histories need it. */
function often<T>(arbitrary: T): [T, T, T] {
  return [arbitrary, arbitrary, arbitrary]
}

/** All commands: everything that a merchant, a customer, the operator or a job does to payments. */
export const allCommands: fc.Arbitrary<Command>[] = [
  begin,
  ...often(itemIndex.map((at) => customer(at, 'paid'))),
  itemIndex.map((at) => customer(at, 'declined')),
  itemIndex.map(takeBack),
  ...often(fc.tuple(itemIndex, fc.nat(2)).map(([at, nth]) => callback(at, nth))),
  itemIndex.map(checkCommand),
  itemIndex.map((at) =>
    aboutItem('stale', at, async (_payment, name, _model, { environment }) => {
      environment.operator.stale.add(name)
    }),
  ),
  ...often(fc.constant(command('resolve()', resolve))),
  fc.constantFrom(8, 45, 5_000, 90_000, 691_200).map(advance),
  fc.boolean().map((isDown) =>
    command(`operator ${isDown ? 'down' : 'up'}`, async (_model, { environment }) => {
      environment.operator.isDown = isDown
    }),
  ),
]

function collectCommand(input: {
  merchantIndex: number
  reference: string
  amount: number
  treatment: Treatment
}): Command {
  const { merchantIndex, reference, amount, treatment } = input
  return command(`collect(${merchantIndex}, ${reference}, ${amount}, ${treatment})`, async (model, real) => {
    const { operator } = real.environment
    const merchant = real.merchants[merchantIndex]
    if (!merchant) throw new Error('no such merchant')
    const body = {
      amount: BigInt(amount),
      customerPhone: '70000001',
      paymentMethod: 'OperatorA',
      reference,
    } as const
    operator.treatment = treatment
    const answer = await outcomeOf(
      asMerchant(merchant.merchantId, () => collect(contextOf(real.services, merchant), body)),
    )
    operator.treatment = 'normal'
    if (model.find(merchantIndex, reference)) {
      expect(answer).toBe('DUPLICATE_REFERENCE')
      expect(operator.log).toEqual([])
      return
    }
    const payment = model.begin(merchantIndex, reference, BigInt(amount))
    const [exchange] = operator.log
    if (!exchange) throw new Error('nothing was sent')
    real.names.push(exchange.correlationId)
    applyAnswer(model, real)
    expect(answer).toBe(payment.status === 'failed' ? 'PAYMENT_REFUSED' : payment.status)
  })
}

/** The operator gives the customer the money back. */
function takeBack(at: number): Command {
  return aboutItem('taken back', at, async (_payment, name, _model, { environment }) => {
    const operation = environment.operator.operations.get(name)
    if (operation?.state === 'paid') operation.state = 'reversed'
  })
}

/** The customer answers the prompt, however late. */
function customer(at: number, state: 'paid' | 'declined'): Command {
  return aboutItem(state, at, async (_payment, name, _model, { environment }) => {
    const operation = environment.operator.operations.get(name)
    // An operator may also find out later that the payment succeeded.
    if (operation?.state === 'prompting' || (operation?.state === 'declined' && state === 'paid'))
      operation.state = state
  })
}

/** The status that the operator's callbacks claim. */
const claims = { prompting: 'pending', paid: 'settled', declined: 'refused', reversed: 'reversed' } as const

/** The operator calls back for the `nth` time, in any order, any number of times. */
function callback(at: number, nth: number): Command {
  return aboutItem(`callback ${nth} `, at, async (payment, name, model, { environment, services }) => {
    const dedupeKey = `${name}:${nth}`
    const says = claims[environment.operator.operations.get(name)?.state ?? 'prompting']
    const kept = await recordCallback(services, {
      provider: 'OperatorA',
      dedupeKey,
      body: '{}',
      requestId: null,
      correlationId: name,
      says,
    })
    expect(kept.isNew).toBe(!model.callbacks.has(dedupeKey))
    model.callbacks.add(dedupeKey)
    const isSettled = payment.status === 'success' || payment.status === 'reversed'
    payment.isDue ||= kept.isNew && !(isSettled && says === 'settled')
  })
}

/** A payer's browser asks for the status, long enough after the last question. */
function checkCommand(at: number): Command {
  return aboutItem('check', at, async (payment, name, model, real) => {
    await forgetPauses(real)
    const merchantId = real.merchants[payment.merchantIndex]?.merchantId ?? null
    const wasOpen = payment.status === 'pending'
    const isGone = model.isGone(payment)
    const answer = await outcomeOf(checkPayment(real.services, payment.reference, merchantId))
    const { log } = real.environment.operator
    expect(log.every(({ correlationId }) => correlationId === name)).toBe(true)
    expect(log.length > 0).toBe(wasOpen && !isGone)
    if (isGone) model.giveUp(payment)
    applyAnswer(model, real)
    const last = log.at(-1)?.answer
    const isUnreached = payment.status === 'pending' && (last === 'unreachable' || last === 'not_sent')
    expect(answer).toBe(isUnreached ? 'OPERATOR_UNREACHABLE' : paymentState[payment.status])
  })
}

/** Runs the job that asks about due requests. A request that a callback made due must be asked about. */
async function resolve(model: PaymentsModel, real: RealSystem): Promise<void> {
  await forgetPauses(real)
  const job = serviceJobs(real.services).find(({ name }) => name === resolveJob('OperatorA'))
  await job?.run()
  await Promise.allSettled(real.services.inFlight.values())
  const asked = new Set(real.environment.operator.log.map(({ correlationId }) => correlationId))
  const gone = model.payments.filter((payment) => model.isGone(payment))
  const due = model.payments.flatMap((payment, at) =>
    payment.isDue && !gone.includes(payment) ? [real.names[at]] : [],
  )
  expect(due.filter((name) => name !== undefined && !asked.has(name))).toEqual([])
  // The job gives up a payment without a question, when the schedule reaches it: only its status tells.
  const states = await read(real)
  for (const payment of gone) {
    const row = states.payments.find(
      ({ merchantIndex, reference }) =>
        merchantIndex === payment.merchantIndex && reference === payment.reference,
    )
    if (row?.status === 'failed' || payment.isDue) model.giveUp(payment)
  }
  applyAnswer(model, real)
}

function advance(seconds: number): Command {
  return command(`advance(${seconds} s)`, async (model, { environment }) => {
    await environment.advance(seconds * 1_000)
    model.now += seconds * 1_000
  })
}

/** The state before the first command: no time has passed, or a day has. */
export const startingPoints: fc.Arbitrary<Command[]> = fc.constantFrom<Command[]>(
  [],
  [],
  [advance(90_000), command('resolve()', resolve)],
)

/** Ends a run: the operator is back, and a day later nothing is undecided. */
export async function finish(model: PaymentsModel, real: RealSystem): Promise<void> {
  const end: Command[] = [
    command('operator up', async (_model, { environment }) => void (environment.operator.isDown = false)),
    advance(90_000),
    command('resolve()', resolve),
  ]
  for (const each of end) await each.run(model, real)
  expect(model.payments.filter(({ status }) => status === 'pending')).toEqual([])
}

/** Applies the exchanges since the command began to the model, in their order. */
function applyAnswer(model: PaymentsModel, real: RealSystem): void {
  for (const exchange of real.environment.operator.log) {
    const payment = model.payments[real.names.indexOf(exchange.correlationId)]
    if (!payment) throw new Error('the operator was asked about a payment that no command began')
    expect(model.applyAnswer(payment, exchange)).toBe(null)
  }
}

/** Lets the pauses pass: the last question was a while ago, and an unsent request may be sent. */
async function forgetPauses({ environment, merchants }: RealSystem): Promise<void> {
  await environment.db.owner.query(
    `UPDATE operator_request SET query_after = NULL,
       fence_until = CASE state WHEN 'unsent' THEN fence_until - interval '1 s' ELSE fence_until END
     WHERE merchant_id = ANY ($1) AND next_check_at IS NOT NULL`,
    [merchants.map(({ merchantId }) => merchantId)],
  )
}

/** Awaits the status, or the code of the refusal. */
async function outcomeOf(work: Promise<{ status: string } | { state: string }>): Promise<string> {
  try {
    const answer = await work
    return 'state' in answer ? answer.state : answer.status
  } catch (error) {
    if (error instanceof DomainError) return error.code
    throw error
  }
}

interface StandingPayments {
  payments: { merchantIndex: number; reference: string; status: string; late: boolean; events: string[] }[]
  balances: bigint[]
}

async function read({ environment, merchants }: RealSystem): Promise<StandingPayments> {
  const ids = merchants.map(({ merchantId }) => merchantId)
  const { rows } = await environment.db.owner.query<{
    payments: StandingPayments['payments']
    balances: string[]
  }>({
    name: 'standing',
    text: `SELECT
      (SELECT coalesce(json_agg(json_build_object(
          'merchantIndex', array_position($1::int[], t.merchant_id) - 1,
        'reference', t.reference, 'status', t.status, 'late', t.late, 'events', (
          SELECT json_agg(e.type ORDER BY e.id) FROM event e
          WHERE e.merchant_id = t.merchant_id AND e.data->>'transaction_id' = t.id::text
        )) ORDER BY t.id), '[]')
       FROM transaction t WHERE t.merchant_id = ANY ($1)) AS payments,
      (SELECT json_agg(b.available::text ORDER BY array_position($1, b.merchant_id)) FROM merchant_balance b
       WHERE b.merchant_id = ANY ($1)) AS balances`,
    values: [ids],
  })
  const [row] = rows
  return { payments: row?.payments ?? [], balances: (row?.balances ?? []).map(BigInt) }
}

async function compare(model: PaymentsModel, real: RealSystem): Promise<void> {
  expect(await read(real)).toEqual({
    payments: model.payments.map(({ merchantIndex, reference, status, late, events }) => ({
      merchantIndex,
      reference,
      status,
      late,
      events,
    })),
    balances: real.merchants.map((_merchant, merchantIndex) => model.balance(merchantIndex)),
  })
}
