import { operators } from './operators.ts'
import type { Facts } from './rules.ts'

const keptMax = 20_000

/** A request from the moment that its operator read it until the caller was answered, or gave up. */
export interface OperatorCall {
  readonly operator: string
  readonly op: Facts['op']
  readonly msisdn: string
  readonly clientReference: string
  /** Its place among all arrivals and ends. Between two places it was open. */
  readonly arrived: number
  /** The place of its end; null while it is open. */
  ended: number | null
}

/** When the newest requests came and went, in one order; kept in memory alone. */
export class CallLog {
  #calls: OperatorCall[] = []
  #ticks = 0

  /** @returns its end, which counts once */
  arrive({ operator, op, msisdn, clientReference }: Facts): () => void {
    const name = operators[operator].name
    const call: OperatorCall = {
      operator: name,
      op,
      msisdn,
      clientReference,
      arrived: ++this.#ticks,
      ended: null,
    }
    this.#calls.push(call)
    if (this.#calls.length > 2 * keptMax) this.#calls = this.#calls.slice(-keptMax)
    return () => void (call.ended ??= ++this.#ticks)
  }

  /** In the order of their arrival; only those that ask for `op` where it is given. */
  list(op: string | null): readonly OperatorCall[] {
    return this.#calls.filter((call) => op === null || call.op === op).slice(-keptMax)
  }

  clear(): void {
    this.#calls = []
  }
}
