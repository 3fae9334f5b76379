import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as undici from 'undici'
import type { SimulatorClock } from './clock.ts'
import { sha256 } from './credentials.ts'
import type { OperationChange, CallbackNotice } from './model.ts'
import { operators, sandboxWebhookSecret } from './operators.ts'
import type { Store } from './store.ts'

// The rest of undici would take 11 MB, and as much time as the simulator's own code.
const Agent = createRequire(import.meta.url)('undici/lib/dispatcher/agent.js') as typeof undici.Agent

const timeoutMs = 5_000
/** The most callbacks that are sent at once; further ones wait in order. */
const inFlightMax = 64

/**
 * Delivers callbacks and webhooks, with each operator's own schedule of repetitions. An attempt is recorded
 * before it is made: so an operator that calls once never calls twice, and an operator that repeats its calls
 * continues after a restart.
 */
export class Notifier {
  readonly #store: Store
  readonly #clock: SimulatorClock
  readonly #log: (line: object) => void
  readonly #busy = new Set<string>()
  readonly #heard = new Map<string, () => void>()
  // `statusOf` has its own deadline.
  readonly #agent = new Agent({ connections: inFlightMax, headersTimeout: 0, bodyTimeout: 0 })
  #queue: CallbackNotice[] = []
  #inFlight = 0
  #closed = false

  constructor(store: Store, clock: SimulatorClock, log: (line: object) => void) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    store.onChange((change) => this.#follow(change))
  }

  close(): void {
    this.#closed = true
    this.#queue = []
    void this.#agent.destroy()
  }

  /**
   * Waits until an attempt to notify about an operation is over, or until `mostMs` of the machine's time have
   * passed.
   */
  whenNotified(operationId: string, mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, mostMs)
      timer.unref()
      this.#heard.set(operationId, () => {
        clearTimeout(timer)
        this.#heard.delete(operationId)
        resolve()
      })
    })
  }

  #follow(change: OperationChange): void {
    if ('reset' in change) {
      this.#queue = []
      this.#busy.clear()
    }
    if ('note' in change && !this.#busy.has(change.note.id)) this.#schedule(change.note)
  }

  #schedule({ id, dueAt }: CallbackNotice): void {
    if (dueAt === null) this.#clock.clear(`note:${id}`)
    else this.#clock.set(`note:${id}`, dueAt, () => this.#attempt(id))
  }

  #attempt(id: string): void {
    const due = this.#store.note(id)
    if (!due) return
    const gap = operators[due.operator].retryGapsMs[due.attempts]
    const note: CallbackNotice = {
      ...due,
      attempts: due.attempts + 1,
      dueAt: gap === undefined ? null : this.#clock.now() + gap,
    }
    this.#busy.add(id)
    this.#store.commit([{ note }])
    // The call leaves once its attempt is in the journal.
    void this.#store.written().then(() => {
      if (this.#closed || !this.#busy.has(id)) return
      this.#queue.push(note)
      this.#pump()
    })
  }

  #pump(): void {
    while (this.#inFlight < inFlightMax && !this.#closed) {
      const note = this.#queue.shift()
      if (!note) return
      this.#inFlight += 1
      this.#deliver(note)
        .then((taken) => this.#conclude(note, taken))
        .catch((error: unknown) =>
          this.#log({ level: 'error', event: 'callback not recorded', why: String(error) }),
        )
    }
  }

  #conclude(note: CallbackNotice, taken: boolean): void {
    this.#inFlight -= 1
    this.#heard.get(note.operationId ?? '')?.()
    if (this.#closed) return
    const current = this.#busy.delete(note.id)
    if (current && note.dueAt !== null) {
      if (taken) this.#store.commit([{ note: { ...note, body: '', dueAt: null } }])
      else this.#schedule(note)
    }
    this.#pump()
  }

  async #deliver(note: CallbackNotice): Promise<boolean> {
    const webhook = this.#store.webhook
    const url = note.url ?? webhook?.url
    if (url === undefined) return false
    const at = this.#clock.now()
    const headers =
      note.url === null ? signed(note, at, webhook?.secret ?? sandboxWebhookSecret) : described(note, at)
    try {
      const { origin, pathname, search } = new URL(url)
      const status = await statusOf(this.#agent, {
        origin,
        path: pathname + search,
        method: note.url === null ? 'POST' : 'PUT',
        headers: { 'content-type': 'application/json', ...headers },
        body: note.body,
      })
      if (status >= 200 && status < 300) return true
      this.#log({ level: 'warn', event: 'callback refused', note: note.id, attempt: note.attempts, status })
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#log({ level: 'warn', event: 'callback failed', note: note.id, attempt: note.attempts, why })
    }
    return false
  }
}

/**
 * Makes one request, without redirects. Uses undici's `dispatch`, because `fetch` takes eight times the
 * processor time.
 * @returns the status of the answer, after its body
 * @throws Error when there is no complete answer in time
 */
function statusOf(agent: undici.Agent, request: undici.Dispatcher.RequestOptions): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const late = new Error(`no answer within ${timeoutMs} ms`)
  let status = 0
  let isLate = false
  let connection: undici.Dispatcher.DispatchController | undefined
  const stop = () => {
    isLate = true
    reject(late)
    connection?.abort(late)
  }
  const timer = setTimeout(stop, timeoutMs).unref()
  agent.dispatch(request, {
    onRequestStart(controller) {
      if (isLate) controller.abort(late)
      connection = controller
    },
    onResponseStart: (_, code) => void (status = code),
    onResponseData: () => {},
    onResponseEnd() {
      clearTimeout(timer)
      resolve(status)
    },
    onResponseError(_, error) {
      clearTimeout(timer)
      reject(error)
    },
  })
  return promise
}

/** Returns the headers of a GSMA callback. */
function described(note: CallbackNotice, at: number): Record<string, string> {
  const whole = note.forged ? `${note.body} ` : note.body
  return {
    'x-correlationid': note.correlationId,
    'x-date': new Date(at).toISOString(),
    'x-content-hash': sha256(whole),
  }
}

/** Returns the signature of a checkout event: over the time, immediately followed by the body. */
function signed(note: CallbackNotice, at: number, secret: string): Record<string, string> {
  const t = Math.floor(at / 1_000)
  const key = note.forged ? `not ${secret}` : secret
  const v1 = createHmac('sha256', key).update(`${t}${note.body}`).digest('hex')
  return { 'checkout-signature': `t=${t},v1=${v1}` }
}
