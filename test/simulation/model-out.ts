import { type ModelPayment, PaymentsModel } from './model.ts'
import type { PlayedExchange } from './environment.ts'

/** A deposit or payout of the model. Times are milliseconds since the run began. */
export interface ModelOut {
  kind: 'deposit' | 'payout'
  merchantIndex: number
  reference: string
  amount: bigint
  /** The amount that the operator stated to have paid. */
  stated: bigint
  /** The decision of two people about the rest that the operator did not state; null before. */
  ruling: 'credited' | 'paid' | null
  status: 'pending' | 'processing' | 'success' | 'completed' | 'failed' | 'cancelled' | 'reversed'
  events: string[]
  /** Whether the operator gave the money back. */
  isBack: boolean
  /** The collection that this deposit refunds. */
  refundOf: ModelPayment | null
  /** The time at which a payout is to be sent; null: at once. */
  sendAt: number | null
  /**
   * The knowledge about its request: none was made, it never left, it may have left, or the operator has it.
   */
  request: 'none' | 'unsent' | 'doubt' | 'accepted'
  /** The time of its creation. */
  createdAt: number
  sentAt: number
  sends: number
  /** Whether a callback came that makes the service ask. */
  isDue: boolean
}

const second = 1_000
const fence = 30 * second
/** A request that never left is given up after this time. */
const unsentFor = { deposit: 15 * second, payout: 86_400 * second }

/**
 * The rules of money out beside those of collections: two pages, without a database, a network or a clock.
 */
export class MoneyModel extends PaymentsModel {
  readonly outs: ModelOut[] = []
  /** Collections that the operator reversed. */
  readonly takenBack = new Set<ModelPayment>()
  /** The money that every merchant began with. */
  readonly funded: bigint

  constructor(funded: bigint) {
    super()
    this.funded = funded
  }

  /** The worth of a merchant: above zero it is available, below zero it is owed. */
  worth(merchantIndex: number): bigint {
    const mine = <T extends { merchantIndex: number }>(all: readonly T[]) =>
      all.filter((each) => each.merchantIndex === merchantIndex)
    const came = mine(this.payments)
      .filter(
        (each) => each.status === 'success' || (each.status === 'reversed' && !this.takenBack.has(each)),
      )
      .reduce((sum, { amount }) => sum + amount, 0n)
    const went = mine(this.outs).reduce((sum, out) => sum + this.gone(out), 0n)
    return this.funded + came - went
  }

  /** The part of a payment out that the merchant does not have: reserved, paid, or withheld. */
  gone(out: ModelOut): bigint {
    const { amount, stated, ruling } = out
    if (this.isReserved(out)) return amount
    if (out.isBack) return ruling === null ? amount - stated : 0n
    if (!this.isPaid(out)) return 0n
    return ruling === 'credited' ? stated : amount
  }

  /** Decides about the rest of a payment out, as two people. @returns whether they may decide so */
  rule(out: ModelOut, ruling: 'credited' | 'paid'): boolean {
    const isWithheld = out.stated < out.amount && (this.isPaid(out) || out.isBack) && out.ruling === null
    if (!isWithheld || (ruling === 'paid' && out.isBack)) return false
    out.ruling = ruling
    out.events.push(`withheld_${ruling}`)
    if (ruling === 'paid') this.#giveBack(out.refundOf)
    return true
  }

  reserved(merchantIndex: number): bigint {
    const open = this.outs.filter((out) => out.merchantIndex === merchantIndex && this.isReserved(out))
    return open.reduce((sum, { amount }) => sum + amount, 0n)
  }

  /** Whether money is reserved for it. */
  isReserved({ status, sendAt }: ModelOut): boolean {
    return status === 'processing' || (status === 'pending' && sendAt === null)
  }

  isPaid({ status, isBack }: ModelOut): boolean {
    return (status === 'success' || status === 'completed') && !isBack
  }

  isOpen({ status }: ModelOut): boolean {
    return status === 'pending' || status === 'processing'
  }

  /** Deposits and collections share one space of references; payouts have their own. */
  isTaken(kind: ModelOut['kind'], merchantIndex: number, reference: string): boolean {
    const others: readonly { merchantIndex: number; reference: string; kind?: string }[] =
      kind === 'deposit' ? [...this.payments, ...this.outs.filter((out) => out.kind === kind)] : this.outs
    return others.some(
      (each) =>
        each.merchantIndex === merchantIndex &&
        each.reference === reference &&
        (kind === 'deposit' || each.kind === kind),
    )
  }

  /** The refundable rest of a collection: the payment, less finished refunds and those under way. */
  left(payment: ModelPayment): bigint {
    const gone = this.outs.filter(
      (out) => out.refundOf === payment && (this.isReserved(out) || this.isPaid(out)),
    )
    return gone.reduce((rest, out) => rest - this.gone(out), payment.amount)
  }

  deposit(out: Pick<ModelOut, 'merchantIndex' | 'reference' | 'amount' | 'refundOf'>): ModelOut {
    const made = this.#add({
      ...out,
      kind: 'deposit',
      status: 'processing',
      sendAt: null,
    })
    made.request = 'doubt'
    return made
  }

  payout(out: Pick<ModelOut, 'merchantIndex' | 'reference' | 'amount' | 'sendAt'>): ModelOut {
    return this.#add({
      ...out,
      kind: 'payout',
      status: 'pending',
      refundOf: null,
    })
  }

  #add(
    out: Pick<ModelOut, 'kind' | 'merchantIndex' | 'reference' | 'amount' | 'status' | 'refundOf' | 'sendAt'>,
  ) {
    const made: ModelOut = {
      ...out,
      stated: out.amount,
      ruling: null,
      events: [`${out.kind}_${out.status}`],
      isBack: false,
      request: 'none',
      createdAt: this.now,
      sentAt: this.now,
      sends: 0,
      isDue: false,
    }
    this.outs.push(made)
    return made
  }

  /**
   * Begins due payouts, the oldest first; a scheduled one needs its money now.
   * @returns the payouts to be sent
   */
  beginDue(): ModelOut[] {
    const due = this.outs
      .filter(({ status, sendAt }) => status === 'pending' && (sendAt ?? 0) <= this.now)
      .toSorted((a, b) => (a.sendAt ?? a.createdAt) - (b.sendAt ?? b.createdAt))
    return due.filter((out) => {
      // A merchant that owes begins nothing; a scheduled payout without money fails.
      if (out.sendAt === null && this.worth(out.merchantIndex) < 0n) return false
      if (out.sendAt !== null && this.worth(out.merchantIndex) < out.amount) {
        this.#end(out, 'failed')
        return false
      }
      this.#become(out, 'processing')
      out.request = 'doubt'
      out.createdAt = this.now
      out.sentAt = this.now
      return true
    })
  }

  cancel(out: ModelOut): boolean {
    if (out.status !== 'pending') return false
    this.#end(out, 'cancelled')
    return true
  }

  /** Applies the operator's answer. @returns the error of the service, or null */
  applyAnswerOut(out: ModelOut, { what, answer, stated }: PlayedExchange): string | null {
    out.isDue = false
    if (stated !== null && out.status === 'processing') out.stated = stated
    if (what === 'query') {
      this.#learnQuery(out, answer)
      return null
    }
    const wrong = this.#refuseSendOut(out)
    if (!wrong) this.#learnSend(out, answer)
    return wrong
  }

  /** As for any payment; the operator may also reverse a payment that refunds gave back, once. */
  override applyAnswer(payment: ModelPayment, exchange: PlayedExchange): string | null {
    const wasReversed = payment.status === 'reversed'
    const wrong = super.applyAnswer(payment, exchange)
    if (exchange.answer !== 'reversed') return wrong
    if (wasReversed && !this.takenBack.has(payment)) payment.events.push('payment_reversed')
    this.takenBack.add(payment)
    return wrong
  }

  #refuseSendOut({ kind, sends, request, status, sentAt, createdAt }: ModelOut): string | null {
    if (status !== 'processing') return `sent when it was ${status}`
    if (sends === 0) return null
    if (request === 'accepted') return 'sent again although the operator has it'
    if (request === 'doubt' && this.now - sentAt < fence) return 'sent again behind its fence'
    if (request === 'unsent' && this.now - createdAt >= unsentFor[kind]) return 'sent when it was given up'
    return null
  }

  #learnSend(out: ModelOut, answer: PlayedExchange['answer']): void {
    const nothingLeft = out.sends === 0 || out.request === 'unsent'
    out.sends += 1
    out.sentAt = this.now
    out.request = 'doubt'
    if (answer === 'settled') this.#paid(out)
    if (answer === 'refused') this.#end(out, 'failed')
    if (answer === 'accepted') out.request = 'accepted'
    if (answer === 'not_sent' && nothingLeft) out.request = 'unsent'
    // Without a float a deposit fails at once, because its caller waits; a payout waits for a float.
    if (answer === 'floatless' && nothingLeft) {
      if (out.kind === 'deposit') this.#end(out, 'failed')
      else out.request = 'unsent'
    }
  }

  #learnQuery(out: ModelOut, answer: PlayedExchange['answer']): void {
    if (answer === 'settled' || answer === 'reversed') this.#paid(out)
    if (answer === 'reversed' && this.isPaid(out)) {
      out.isBack = true
      out.events.push(`${out.kind}_reversed`)
      if (out.kind === 'deposit') out.status = 'reversed'
    }
    if (answer === 'refused') this.#end(out, 'failed')
    if (answer === 'pending' && out.status === 'processing') out.request = 'accepted'
  }

  isGivenUp({ kind, status, request, createdAt }: ModelOut): boolean {
    return status === 'processing' && request === 'unsent' && this.now - createdAt >= unsentFor[kind]
  }

  giveUpOut(out: ModelOut): void {
    out.isDue = false
    this.#end(out, 'failed')
  }

  #paid(out: ModelOut): void {
    if (out.status !== 'processing') return
    this.#become(out, out.kind === 'deposit' ? 'success' : 'completed', `${out.kind}_completed`)
    this.#giveBack(out.refundOf)
  }

  /** Reverses a collection that refunds gave back; a withheld rest does not count. */
  #giveBack(original: ModelPayment | null): void {
    if (original?.status !== 'success') return
    const given = this.outs.filter((each) => each.refundOf === original && this.isPaid(each))
    const paid = given.reduce(
      (sum, { amount, stated, ruling }) => sum + (ruling === 'paid' ? amount : stated),
      0n,
    )
    if (paid < original.amount) return
    original.status = 'reversed'
    original.events.push('payment_reversed')
  }

  #end(out: ModelOut, status: 'failed' | 'cancelled'): void {
    if (this.isOpen(out)) this.#become(out, status)
  }

  #become(out: ModelOut, status: ModelOut['status'], event = `${out.kind}_${status}`): void {
    out.status = status
    out.events.push(event)
  }
}
