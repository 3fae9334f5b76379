import { Book } from './book.ts'
import type { Journal } from './journal.ts'
import { noJournal } from './journal.ts'
import type {
  OperationChange,
  CallbackNotice,
  SimulatedOperation,
  OperatorKey,
  WebhookTarget,
} from './model.ts'

const recentMax = 50
const perNumberMax = 100

/**
 * The complete state of the operators, in memory. Every change goes through `commit`, which writes it to the
 * journal first; a restart replays the same changes, so the state can always be rebuilt.
 */
export class Store {
  readonly book = new Book()
  readonly #operations = new Map<string, SimulatedOperation>()
  readonly #byCorrelation = new Map<string, string>()
  readonly #byName = new Map<string, string>()
  readonly #byReference = new Map<string, string[]>()
  readonly #byNumber = new Map<string, string[]>()
  readonly #open = new Set<string>()
  readonly #notes = new Map<string, CallbackNotice>()
  #recent: string[] = []
  #listeners: ((change: OperationChange) => void)[] = []
  #journal: Journal = noJournal
  #count = 0
  #clock = 0
  readonly #moves = new Set<string>()
  #webhook: WebhookTarget | null = null

  /** The number of operations ever seen, including forgotten ones. */
  get count(): number {
    return this.#count
  }

  /** The clock's offset as last recorded, in milliseconds. */
  get clock(): number {
    return this.#clock
  }

  /** Whether the clock was already moved under this name. */
  hasMoved(move: string): boolean {
    return this.#moves.has(move)
  }

  get webhook(): WebhookTarget | null {
    return this.#webhook
  }

  /** Calls a listener after every change, also after replayed ones. */
  onChange(listener: (change: OperationChange) => void): void {
    this.#listeners.push(listener)
  }

  /** Sets the journal for later changes. */
  keepIn(journal: Journal): void {
    this.#journal = journal
  }

  /** Applies changes together: all of them survive a crash, or none. */
  commit(changes: readonly OperationChange[]): void {
    if (changes.length === 0) return
    this.#journal.append(changes)
    this.play(changes)
  }

  /** Applies changes that the journal holds already. */
  play(changes: readonly OperationChange[]): void {
    for (const change of changes) {
      this.#apply(change)
      for (const listener of this.#listeners) listener(change)
    }
  }

  /**
   * Forgets operations and balances. The clock stays, because time never runs backwards; so does the webhook
   * address.
   */
  reset(): void {
    const clock = this.#clock
    const moves = [...this.#moves].map((move) => ({ clock, move }))
    const kept: OperationChange[] = [{ reset: this.#count }, { clock }, ...moves, { webhook: this.#webhook }]
    this.#journal.clear()
    this.commit(kept)
  }

  operation(id: string): SimulatedOperation | undefined {
    return this.#operations.get(id)
  }

  /** Finds an operation by the client's own id of the request: correlation id or idempotency key. */
  correlated(operator: OperatorKey, correlationId: string): SimulatedOperation | undefined {
    return this.#operations.get(this.#byCorrelation.get(`${operator}:${correlationId}`) ?? '')
  }

  /** Finds an operation by another id of the operator: receipt reference or server correlation id. */
  named(operator: OperatorKey, name: string): SimulatedOperation | undefined {
    return this.#operations.get(this.#byName.get(`${operator}:${name}`) ?? '')
  }

  /** Returns all operations with the client's reference, oldest first. */
  withReference(operator: OperatorKey, clientReference: string): SimulatedOperation[] {
    return this.#rows(this.#byReference.get(`${operator}:${clientReference}`))
  }

  /** Returns the newest operations of a telephone, newest first (at most 100, over all operators). */
  ofNumber(msisdn: string): SimulatedOperation[] {
    return this.#rows(this.#byNumber.get(msisdn)).toReversed()
  }

  /** Yields the operations that are not decided yet. */
  *pending(): Generator<SimulatedOperation> {
    for (const id of this.#open) {
      const operation = this.#operations.get(id)
      if (operation) yield operation
    }
  }

  get pendingCount(): number {
    return this.#open.size
  }

  /** Returns the newest operations, newest first (at most 50). */
  recent(): SimulatedOperation[] {
    return this.#rows(this.#recent).toReversed()
  }

  /** Returns a callback that is still to be delivered. */
  note(id: string): CallbackNotice | undefined {
    return this.#notes.get(id)
  }

  get noticeCount(): number {
    return this.#notes.size
  }

  close(): void {
    this.#journal.close()
    this.#journal = noJournal
    this.#listeners = []
  }

  #apply(change: OperationChange): void {
    if ('operation' in change) this.#put(change.operation)
    else if ('entry' in change) this.book.apply(change.entry)
    else if ('note' in change) this.#putNote(change.note)
    else if ('clock' in change) this.#tick(change)
    else if ('webhook' in change) this.#webhook = change.webhook
    else this.#forget(change.reset)
  }

  #tick({ clock, move }: Extract<OperationChange, { clock: number }>): void {
    this.#clock = clock
    if (move !== undefined) this.#moves.add(move)
  }

  #put(operation: SimulatedOperation): void {
    const { id } = operation
    const before = this.#operations.get(id)
    this.#operations.set(id, operation)
    if (operation.state === 'pending') this.#open.add(id)
    else this.#open.delete(id)
    if (!before) this.#index(operation)
    if (operation.msisdn !== null && operation.msisdn !== before?.msisdn) {
      keepLast(listIn(this.#byNumber, operation.msisdn), id, perNumberMax)
    }
  }

  #index(operation: SimulatedOperation): void {
    const { id, operator, correlationId, clientReference } = operation
    this.#count += 1
    keepLast(this.#recent, id, recentMax)
    for (const name of [operation.reference, operation.serverCorrelationId])
      this.#byName.set(`${operator}:${name}`, id)
    if (correlationId !== '') this.#byCorrelation.set(`${operator}:${correlationId}`, id)
    if (clientReference !== '') listIn(this.#byReference, `${operator}:${clientReference}`).push(id)
  }

  #putNote(note: CallbackNotice): void {
    if (note.dueAt === null) this.#notes.delete(note.id)
    else this.#notes.set(note.id, note)
  }

  #forget(count: number): void {
    const indexes = [this.#byCorrelation, this.#byName, this.#byReference, this.#byNumber]
    for (const table of [this.#operations, this.#open, this.#notes, ...indexes]) table.clear()
    this.#recent = []
    this.book.clear()
    this.#count = count
  }

  #rows(ids: readonly string[] | undefined): SimulatedOperation[] {
    return (ids ?? []).flatMap((id) => this.#operations.get(id) ?? [])
  }
}

function listIn(lists: Map<string, string[]>, key: string): string[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

function keepLast(list: string[], id: string, most: number): void {
  list.push(id)
  if (list.length > most) list.shift()
}
