import { operators } from './operators.ts'
import { Ring } from './ring.ts'
import type { Facts } from './rules.ts'

const keptMax = 20_000

/** A request, from the moment when its operator read it until the caller got an answer or stopped waiting. */
export interface OperatorCall {
  readonly operator: string
  readonly op: Facts['op']
  readonly msisdn: string
  readonly clientReference: string
  /**
   * The request's position in the common order of arrivals and ends. The request was open between its two
   * positions.
   */
  readonly arrived: number
  /** The position of its end; null while it is open. */
  ended: number | null
}

/** The arrivals and ends of the newest requests, in one order; kept only in memory. */
export class CallLog {
  readonly #calls = new Ring<OperatorCall>(keptMax)
  #ticks = 0

  /**
   * Records an arrival.
   * @returns a function that records the end; only its first call counts
   */
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
    this.#calls.add(call)
    return () => void (call.ended ??= ++this.#ticks)
  }

  /** Returns the newest requests in the order of their arrival; if `op` is given, only those of this kind. */
  list(op: string | null): readonly OperatorCall[] {
    return this.#calls.list().filter((call) => op === null || call.op === op)
  }

  clear(): void {
    this.#calls.clear()
  }
}
