import type { PlayedExchange } from './environment.ts'

type Status = 'pending' | 'success' | 'failed' | 'expired' | 'reversed'

/** A collection of the model. Times are milliseconds since the run began. */
export interface ModelPayment {
  merchantIndex: number
  reference: string
  amount: bigint
  status: Status
  late: boolean
  events: string[]
  /** The knowledge about its request: it never left, it may have left, or the operator has it. */
  request: 'unsent' | 'doubt' | 'accepted'
  createdAt: number
  sentAt: number
  sends: number
  /** Whether a callback came that makes the service ask. */
  isDue: boolean
}

const second = 1_000
const lifetime = 86_400 * second
const fence = 30 * second
const resendFor = 60 * second

/** The rules of a collection, without a database, a network or a clock of its own. */
export class PaymentsModel {
  now = 0
  readonly payments: ModelPayment[] = []
  readonly callbacks = new Set<string>()

  find(merchantIndex: number, reference: string): ModelPayment | undefined {
    return this.payments.find((each) => each.merchantIndex === merchantIndex && each.reference === reference)
  }

  begin(merchantIndex: number, reference: string, amount: bigint): ModelPayment {
    const payment: ModelPayment = {
      merchantIndex,
      reference,
      amount,
      status: 'pending',
      late: false,
      events: ['payment_pending'],
      request: 'doubt',
      createdAt: this.now,
      sentAt: this.now,
      sends: 0,
      isDue: false,
    }
    this.payments.push(payment)
    return payment
  }

  /** Applies the operator's answer. @returns the error of the service, or null */
  applyAnswer(payment: ModelPayment, { what, answer }: PlayedExchange): string | null {
    payment.isDue = false
    if (what === 'query') this.#learnQuery(payment, answer)
    else {
      const wrong = this.#wrongToSend(payment)
      if (wrong) return wrong
      this.#learnSend(payment, answer)
    }
    return null
  }

  #wrongToSend({ sends, request, status, sentAt, createdAt }: ModelPayment): string | null {
    if (sends === 0) return null
    if (status !== 'pending') return `sent when it was ${status}`
    if (request === 'accepted') return 'sent again although the operator has it'
    if (request === 'doubt' && this.now - sentAt < fence) return 'sent again behind its fence'
    return this.now - createdAt > resendFor ? 'sent again when the customer was gone' : null
  }

  #learnSend(payment: ModelPayment, answer: PlayedExchange['answer']): void {
    const nothingLeft = payment.sends === 0 || payment.request === 'unsent'
    payment.sends += 1
    payment.sentAt = this.now
    payment.request = 'doubt'
    if (answer === 'settled') this.#end(payment, 'success')
    if (answer === 'refused') this.#end(payment, 'failed')
    if (answer === 'accepted') payment.request = 'accepted'
    if (answer === 'not_sent' && nothingLeft) payment.request = 'unsent'
  }

  #learnQuery(payment: ModelPayment, answer: PlayedExchange['answer']): void {
    const isOver = this.now - payment.createdAt >= lifetime
    // A reversed payment was paid before.
    if (answer === 'settled' || answer === 'reversed') this.#end(payment, 'success')
    if (answer === 'reversed' && payment.status === 'success') {
      payment.status = 'reversed'
      payment.events.push('payment_reversed')
    }
    if (answer === 'refused' && payment.status === 'pending') this.#end(payment, 'failed')
    if (answer === 'pending') payment.request = 'accepted'
    if ((answer === 'pending' || answer === 'absent') && isOver && payment.status === 'pending')
      this.#end(payment, 'expired')
  }

  /** Whether the service gives up the payment without a question, when it looks at it. */
  isGone({ status, request, createdAt }: ModelPayment): boolean {
    return status === 'pending' && request === 'unsent' && this.now - createdAt >= resendFor
  }

  giveUp(payment: ModelPayment): void {
    payment.isDue = false
    this.#end(payment, 'failed')
  }

  #end(payment: ModelPayment, status: Status): void {
    if (payment.status === 'success' || payment.status === 'reversed') return
    payment.late = payment.status !== 'pending'
    payment.status = status
    payment.events.push(status === 'success' ? 'payment_received' : `payment_${status}`)
  }

  balance(merchantIndex: number): bigint {
    const paid = this.payments.filter(
      (each) => each.merchantIndex === merchantIndex && each.status === 'success',
    )
    return paid.reduce((sum, { amount }) => sum + amount, 0n)
  }
}
