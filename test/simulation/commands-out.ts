import fc from 'fast-check'
import { expect } from 'vitest'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { resolveJob } from '../../src/requests/check-slots.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { cancelPayout } from '../../src/resources/payouts/cancel.ts'
import { createPayout } from '../../src/resources/payouts/create.ts'
import { sendDuePayouts } from '../../src/resources/payouts/send.ts'
import { collect } from '../../src/resources/transactions/collect.ts'
import { deposit } from '../../src/resources/transactions/deposit.ts'
import { refundTransaction } from '../../src/resources/transactions/refund.ts'
import {
  call,
  type OutCommand,
  command,
  idOf,
  applyAnswer,
  listed,
  paymentOf,
  type RealOut,
} from './acts-out.ts'
import { rule } from './decisions-out.ts'
import type { ModelPayment } from './model.ts'
import type { ModelOut, MoneyModel } from './model-out.ts'
import { find, forgetPauses, type ModelItem, readItems } from './payment-states.ts'
import { openNode, type Treatment, treatments } from './environment.ts'

const merchantIndex = fc.nat(1)
const itemIndex = fc.nat(9)
const treatment = fc.constantFrom<Treatment>(...treatments, 'floatless', 'short')
const amount = fc.integer({ min: 1_000, max: 6_000 }).map(BigInt)

/** A merchant asks a customer for money. */
const collects = fc
  .record({
    merchantIndex,
    reference: fc.constantFrom('a', 'b', 'c', 'd'),
    amount,
    treatment: paysOrWaits(),
  })
  .map(collectCommand)

function collectCommand(input: {
  merchantIndex: number
  reference: string
  amount: bigint
  treatment: Treatment
}): OutCommand {
  return command(`collect ${listed(input)}`, async (model, real) => {
    const { reference, treatment: how } = input
    const isTaken = model.isTaken('deposit', input.merchantIndex, reference)
    const answer = await call(real, input.merchantIndex, how, (ctx) => collect(ctx, paymentOf(input)))
    if (isTaken) return expect(answer).toBe('DUPLICATE_REFERENCE')
    const payment = model.begin(input.merchantIndex, reference, input.amount)
    await applyAnswer(model, real)
    expect(answer).toBe(payment.status === 'failed' ? 'PAYMENT_REFUSED' : payment.status)
  })
}

function paysOrWaits() {
  return fc.constantFrom<Treatment>('instant', 'instant', 'normal', 'lost', 'refused')
}

/** A merchant pays a customer. */
const deposits = fc
  .record({
    merchantIndex,
    reference: fc.constantFrom('c', 'd', 'e', 'f', 'g'),
    amount,
    treatment,
  })
  .map(depositCommand)

function depositCommand(input: {
  merchantIndex: number
  reference: string
  amount: bigint
  treatment: Treatment
}): OutCommand {
  return command(`deposit ${listed(input)}`, async (model, real) => {
    const isTaken = model.isTaken('deposit', input.merchantIndex, input.reference)
    const isShort = model.worth(input.merchantIndex) < input.amount
    const answer = await call(real, input.merchantIndex, input.treatment, (ctx) =>
      deposit(ctx, paymentOf(input)),
    )
    if (isTaken) return expect(answer).toBe('DUPLICATE_REFERENCE')
    if (isShort) return expect(answer).toBe('INSUFFICIENT_BALANCE')
    await depositBegan(model, real, model.deposit({ ...input, refundOf: null }), answer)
  })
}

async function depositBegan(model: MoneyModel, real: RealOut, made: ModelOut, answer: string): Promise<void> {
  await applyAnswer(model, real)
  expect(answer).toBe(made.status === 'failed' ? 'PAYMENT_REFUSED' : made.status)
}

/** A merchant gives a payment back: all that is left of it, or a part. */
const refunds = fc
  .record({
    at: itemIndex,
    part: fc.constantFrom<bigint | null>(null, null, null, 1_000n, 2_500n, 500n),
    treatment: fc.oneof(treatment, fc.constantFrom<Treatment>('normal', 'instant')),
  })
  .map(refundCommand)

function refundCommand(input: { at: number; part: bigint | null; treatment: Treatment }): OutCommand {
  return command(`refund ${listed(input)}`, async (model, real) => {
    const original = model.payments[input.at % Math.max(1, model.payments.length)]
    if (!original) return
    const left = model.left(original)
    const asked = input.part ?? left
    const expected = refusalOf(model, original, { left, asked })
    const reference = `refund-${model.outs.length}`
    const id = await idOf(real, original)
    const raw = {
      id,
      reference,
      ...(input.part !== null && { amount: input.part }),
    }
    const answer = await call(real, original.merchantIndex, input.treatment, (ctx) =>
      refundTransaction(ctx, raw),
    )
    if (expected) return expect(answer).toBe(expected)
    const { merchantIndex: merchant } = original
    const made = model.deposit({
      merchantIndex: merchant,
      reference,
      amount: asked,
      refundOf: original,
    })
    await depositBegan(model, real, made, answer)
  })
}

function refusalOf(
  model: MoneyModel,
  original: ModelPayment,
  { left, asked }: { left: bigint; asked: bigint },
): string | null {
  if (original.status !== 'success') return 'NOT_REFUNDABLE'
  if (asked > left || asked === 0n) return 'REFUND_TOO_LARGE'
  if (asked < 1_000n && asked < left) return 'INVALID_INPUT'
  return model.worth(original.merchantIndex) < asked ? 'INSUFFICIENT_BALANCE' : null
}

/** A merchant withdraws money, now or later. */
const payouts = fc
  .record({
    merchantIndex,
    reference: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    amount,
    inSeconds: fc.constantFrom(null, null, 30, 3_001, 50_001),
  })
  .map(payoutCommand)

function payoutCommand(input: {
  merchantIndex: number
  reference: string
  amount: bigint
  inSeconds: number | null
}): OutCommand {
  return command(`payout ${listed(input)}`, async (model, real) => {
    const { reference, inSeconds } = input
    const isTaken = model.isTaken('payout', input.merchantIndex, reference)
    const isShort = inSeconds === null && model.worth(input.merchantIndex) < input.amount
    const at = inSeconds === null ? null : real.environment.clock.now().getTime() + inSeconds * 1_000
    const answer = await call(real, input.merchantIndex, 'normal', async (ctx) => {
      await createPayout(ctx, {
        amount: input.amount,
        destinationPhone: '70000001',
        paymentMethod: 'OperatorA',
        reference,
        ...(at !== null && { scheduledAt: new Date(at) }),
      })
      return { status: 'made' }
    })
    if (isTaken) return expect(answer).toBe('DUPLICATE_PAYOUT')
    if (isShort) return expect(answer).toBe('INSUFFICIENT_BALANCE')
    expect(answer).toBe('made')
    const sendAt = inSeconds === null ? null : model.now + inSeconds * 1_000
    model.payout({ merchantIndex: input.merchantIndex, reference, amount: input.amount, sendAt })
  })
}

/** A merchant cancels a payout. */
function cancelCommand(at: number): OutCommand {
  return command(`cancel(${at})`, async (model, real) => {
    const all = model.outs.filter(({ kind }) => kind === 'payout')
    const out = all[at % Math.max(1, all.length)]
    if (!out) return
    const id = await idOf(real, out)
    const answer = await call(real, out.merchantIndex, 'normal', async (ctx) => {
      await cancelPayout(ctx, id)
      return { status: 'cancelled' }
    })
    expect(answer).toBe(model.cancel(out) ? 'cancelled' : 'STATE_CONFLICT')
  })
}

/** Runs the job that sends due payouts. */
function sendDue(how: Treatment): OutCommand {
  return command(`send(${how})`, async (model, real) => {
    real.environment.operator.treatment = how
    await sendDuePayouts(real.services, 'OperatorA')
    const beginPayment = model.beginDue()
    await applyAnswer(model, real)
    expect(beginPayment.filter(({ sends }) => sends !== 1)).toEqual([])
  })
}

/** A command about an item that the operator was asked for. */
function aboutItem(
  what: string,
  at: number,
  act: (item: ModelItem, name: string, model: MoneyModel, real: RealOut) => Promise<void>,
): OutCommand {
  return command(`${what}(${at})`, async (model, real) => {
    const known = [...real.names]
    const [name, item] = known[at % Math.max(1, known.length)] ?? []
    if (name !== undefined && item) await act(item, name, model, real)
  })
}

/** The customer or the operator decides, however late. */
function decide(at: number, state: 'paid' | 'declined'): OutCommand {
  return aboutItem(state, at, async (_item, name, _model, { environment }) => {
    const operation = environment.operator.operations.get(name)
    if (operation?.state === 'prompting') operation.state = state
  })
}

/** The operator gives the money back, with or without a callback. */
function takeBack(at: number, callsBack: boolean): OutCommand {
  return aboutItem(
    callsBack ? 'taken back, with a callback ' : 'taken back ',
    at,
    async (item, name, model, real) => {
      const operation = real.environment.operator.operations.get(name)
      if (operation?.state !== 'paid') return
      operation.state = 'reversed'
      if (callsBack) await report(item, name, 'back', model, real)
    },
  )
}

const claims = {
  prompting: 'pending',
  paid: 'settled',
  declined: 'refused',
  reversed: 'reversed',
} as const

/** The operator calls back for the `nth` time, in any order, any number of times. */
function callback(at: number, nth: number): OutCommand {
  return aboutItem(`callback ${nth} `, at, (item, name, model, real) =>
    report(item, name, String(nth), model, real),
  )
}

async function report(
  item: ModelItem,
  name: string,
  nth: string,
  model: MoneyModel,
  { environment, services }: RealOut,
) {
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
  const isSettled = ['success', 'completed', 'reversed'].includes(item.status)
  item.isDue ||= kept.isNew && !(isSettled && says === 'settled')
}

/** Runs the job that asks about due requests. A request that a callback made due must be asked about. */
async function resolve(model: MoneyModel, real: RealOut): Promise<void> {
  await forgetPauses(real)
  const job = serviceJobs(real.services).find(({ name }) => name === resolveJob('OperatorA'))
  await job?.run()
  await Promise.allSettled(real.services.inFlight.values())
  const { log } = real.environment.operator
  const asked = new Set(log.map(({ correlationId }) => real.names.get(correlationId)))
  const states = await readItems(real)
  for (const item of [...model.payments, ...model.outs]) {
    const isGone = 'kind' in item ? model.isGivenUp(item) : model.isGone(item)
    if (!isGone) {
      if (item.isDue) expect(asked).toContain(item)
      continue
    }
    // The job gives up an item without a question, when the schedule reaches it: only its status tells.
    if (!item.isDue && find(states, item)?.status !== 'failed') continue
    if ('kind' in item) model.giveUpOut(item)
    else model.giveUp(item)
  }
  await applyAnswer(model, real)
}

function advance(seconds: number): OutCommand {
  return command(`advance(${seconds} s)`, async (model, { environment }) => {
    await environment.advance(seconds * 1_000)
    model.now += seconds * 1_000
  })
}

function operatorIs(isDown: boolean): OutCommand {
  return command(`operator ${isDown ? 'down' : 'up'}`, async (_model, { environment }) => {
    environment.operator.isDown = isDown
  })
}

/** Replaces the node by a new one, which loses the memory of the first. */
const restart = command('restart', async (_model, real) => {
  real.services = openNode(real.environment)
})

/** Makes a command likelier, because most histories need it. */
function often<T>(arbitrary: T): [T, T, T] {
  return [arbitrary, arbitrary, arbitrary]
}

/** The first commands of a run: money that comes in, and some of it on its way out. */
export const openings: fc.Arbitrary<OutCommand>[] = [collects, fc.oneof(deposits, refunds), payouts]

/** All commands: everything that a merchant, a customer, the operator or a job does to money. */
export const allCommands: fc.Arbitrary<OutCommand>[] = [
  collects,
  ...often(deposits),
  ...often(refunds),
  ...often(payouts),
  itemIndex.map(cancelCommand),
  ...often(fc.oneof(treatment, fc.constantFrom<Treatment>('vanished', 'unsent', 'short')).map(sendDue)),
  ...often(itemIndex.map((at) => decide(at, 'paid'))),
  itemIndex.map((at) => decide(at, 'declined')),
  ...often(fc.tuple(itemIndex, fc.constantFrom('credited' as const, 'paid' as const))).map((each) =>
    each.map(([at, verdict]) => rule(at, verdict)),
  ),
  ...often(fc.tuple(itemIndex, fc.boolean()).map(([at, callsBack]) => takeBack(at, callsBack))),
  ...often(fc.tuple(itemIndex, fc.nat(2)).map(([at, nth]) => callback(at, nth))),
  itemIndex.map((at) =>
    aboutItem('stale', at, async (_item, name, _model, { environment }) => {
      environment.operator.stale.add(name)
    }),
  ),
  ...often(fc.constant(command('resolve()', resolve))),
  fc.constantFrom(8, 45, 5_000, 90_000).map(advance),
  fc.boolean().map(operatorIs),
  fc.constant(restart),
]

/** Ends a run: the operator is back, and days later nothing is undecided. */
export async function finish(model: MoneyModel, real: RealOut): Promise<void> {
  const decideAll = command('all paid', async (_model, { environment, names }) => {
    environment.operator.stale.clear()
    for (const name of names.keys()) {
      const operation = environment.operator.operations.get(name)
      if (operation?.state === 'prompting') operation.state = 'paid'
    }
  })
  const ask = command('resolve()', resolve)
  const end = [advance(90_000), sendDue('normal'), ask, decideAll, advance(90_000), ask]
  // The round runs twice: a payout may wait for money that the first round freed.
  for (const each of [operatorIs(false), ...end, ...end]) await each.run(model, real)
  // People decide about most of what is withheld; the rest is withheld at the end.
  const withheld = model.outs.filter(({ stated, amount: asked }) => stated < asked)
  for (const at of withheld.keys()) {
    if (at % 4 < 3)
      await rule(at, (at + model.payments.length) % 2 === 0 ? 'credited' : 'paid').run(model, real)
  }
  // A payout of a merchant that owes may stay pending: it waits for the merchant's next money.
  const mayWait = (out: ModelOut) => out.status === 'pending' && model.worth(out.merchantIndex) < 0n
  expect(model.outs.filter((out) => model.isOpen(out) && !mayWait(out))).toEqual([])
  expect(model.payments.filter(({ status }) => status === 'pending')).toEqual([])
}

/** The worst end: the operator reverses all collections, and then all that was paid out. */
export async function worstEnd(model: MoneyModel, real: RealOut): Promise<void> {
  const items = [...real.names.values()]
  const all = (isOut: boolean) =>
    items.flatMap((item, at) => ('kind' in item === isOut ? [takeBack(at, true)] : []))
  const ask = command('resolve()', resolve)
  for (const each of [...all(false), ask, ...all(true), ask]) await each.run(model, real)
}

/** The merchants cancel the payouts that still wait for money: no later run of this database sends them. */
export async function cancelWaiting(model: MoneyModel, real: RealOut): Promise<void> {
  const all = model.outs.filter(({ kind }) => kind === 'payout')
  for (const [at, { status }] of all.entries()) {
    if (status === 'pending') await cancelCommand(at).run(model, real)
  }
}
