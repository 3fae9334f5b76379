import { Book } from './book.ts'
import { NameIndex, withRoom } from './columns.ts'
import { type Journal, memoryJournal } from './journal.ts'
import type {
  OperationChange,
  CallbackNotice,
  JournalEntry,
  SimulatedOperation,
  OperatorKey,
  WebhookTarget,
} from './model.ts'

const recentMax = 50
const perNumberMax = 100
/** The decided operations that stay in memory; earlier ones are read from the journal. */
const decidedMax = 1_000

/**
 * The complete state of the operators. Every change goes through `commit`, which adds it to the journal
 * first; a restart replays the same changes, so the state can always be rebuilt. Operations have numbers in
 * the order of their arrival.
 */
export class Store {
  readonly book = new Book()
  readonly #pending = new Map<number, SimulatedOperation>()
  /** The newest decided operations, in the order of their last change. */
  readonly #decided = new Map<number, SimulatedOperation>()
  /** By the number of the operation: its newest line in the journal, and its position in the line. */
  #lines = new Float64Array(1_024)
  #positions = new Uint8Array(1_024)
  #size = 0
  #names = new NameIndex()
  readonly #byNumber = new Map<string, number[]>()
  readonly #notes = new Map<string, CallbackNotice>()
  #listeners: ((change: OperationChange) => void)[] = []
  #journal: Journal = memoryJournal()
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

  /** Resolves once the journal holds all changes so far. No caller may learn of them before. */
  written(): Promise<void> {
    return this.#journal.written()
  }

  /** Yields all changes since the last reset, oldest first, from the journal. */
  *history(): Generator<OperationChange> {
    for (const changes of this.#journal.lines()) yield* changes
  }

  /** Applies changes together: all of them survive a crash, or none. */
  commit(changes: readonly OperationChange[]): void {
    if (changes.length === 0) return
    this.play(changes, this.#journal.append(changes))
  }

  /** Applies changes that the journal holds already, in the line at `place`. */
  play(changes: readonly OperationChange[], place: number): void {
    for (const [position, change] of changes.entries()) {
      this.#apply(change, place, position)
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
    this.play(kept, this.#journal.restart(kept))
  }

  operation(id: string): SimulatedOperation | undefined {
    return this.#newest(id, (operation) => operation.id === id)
  }

  /** Returns the operation of a line of a statement. */
  operationOf({ operation }: { operation: number | null }): SimulatedOperation | undefined {
    return operation === null ? undefined : this.#read(operation)
  }

  /** Finds an operation by the client's own id of the request: correlation id or idempotency key. */
  correlated(operator: OperatorKey, correlationId: string): SimulatedOperation | undefined {
    return this.#newest(
      correlationId,
      (operation) => operation.operator === operator && operation.correlationId === correlationId,
    )
  }

  /** Finds an operation by another id of the operator: receipt reference or server correlation id. */
  named(operator: OperatorKey, name: string): SimulatedOperation | undefined {
    return this.#newest(
      name,
      (operation) =>
        operation.operator === operator &&
        (operation.reference === name || operation.serverCorrelationId === name),
    )
  }

  /** Finds the newest operation with the client's reference. */
  newestWithReference(operator: OperatorKey, clientReference: string): SimulatedOperation | undefined {
    return this.#newest(clientReference, (operation) => hasReference(operation, operator, clientReference))
  }

  /** Returns all operations with the client's reference, oldest first. */
  withReference(operator: OperatorKey, clientReference: string): SimulatedOperation[] {
    const found: SimulatedOperation[] = []
    this.#newest(clientReference, (operation) => {
      if (hasReference(operation, operator, clientReference)) found.push(operation)
      return false
    })
    return found.toReversed()
  }

  /** Returns the newest operations of a telephone, newest first (at most 100, over all operators). */
  ofNumber(msisdn: string): SimulatedOperation[] {
    return this.#rows(this.#byNumber.get(msisdn) ?? []).toReversed()
  }

  /** Returns the operations that are not decided yet. */
  pending(): Iterable<SimulatedOperation> {
    return this.#pending.values()
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  /** Returns the newest operations, newest first (at most 50). */
  recent(): SimulatedOperation[] {
    const count = Math.min(recentMax, this.#size)
    return this.#rows(Array.from({ length: count }, (_none, n) => this.#size - 1 - n))
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
    this.#journal = memoryJournal()
    this.#listeners = []
  }

  #apply(change: OperationChange, place: number, position: number): void {
    if ('operation' in change) this.#put(change.operation, place, position)
    else if ('entry' in change) this.#book(change.entry)
    else if ('note' in change) this.#putNote(change.note)
    else if ('clock' in change) this.#tick(change)
    else if ('webhook' in change) this.#webhook = change.webhook
    else this.#forget(change.reset)
  }

  #book(entry: JournalEntry): void {
    const { operationId } = entry
    this.book.apply(entry, operationId === null ? null : (this.#numberOf(operationId) ?? null))
  }

  #tick({ clock, move }: Extract<OperationChange, { clock: number }>): void {
    this.#clock = clock
    if (move !== undefined) this.#moves.add(move)
  }

  #put(operation: SimulatedOperation, place: number, position: number): void {
    const known = this.#numberOf(operation.id)
    const before = known === undefined ? undefined : this.#read(known)
    const number = known ?? this.#add(operation)
    this.#lines[number] = place
    this.#positions[number] = position
    this.#pending.delete(number)
    this.#decided.delete(number)
    if (operation.state === 'pending') this.#pending.set(number, operation)
    else this.#keepDecided(number, operation)
    if (operation.msisdn !== null && operation.msisdn !== before?.msisdn)
      keepLast(listIn(this.#byNumber, operation.msisdn), number, perNumberMax)
  }

  /** @returns the number of the new operation */
  #add(operation: SimulatedOperation): number {
    const { id, reference, serverCorrelationId, correlationId, clientReference } = operation
    const number = this.#size
    this.#size += 1
    this.#count += 1
    this.#lines = withRoom(this.#lines, number)
    this.#positions = withRoom(this.#positions, number)
    for (const name of new Set([id, reference, serverCorrelationId, correlationId, clientReference]))
      if (name !== '') this.#names.add(name, number)
    return number
  }

  #keepDecided(number: number, operation: SimulatedOperation): void {
    this.#decided.set(number, operation)
    if (this.#decided.size <= decidedMax) return
    for (const oldest of this.#decided.keys()) {
      this.#decided.delete(oldest)
      return
    }
  }

  #putNote(note: CallbackNotice): void {
    if (note.dueAt === null) this.#notes.delete(note.id)
    else this.#notes.set(note.id, note)
  }

  #forget(count: number): void {
    for (const table of [this.#pending, this.#decided, this.#byNumber, this.#notes]) table.clear()
    this.#names = new NameIndex()
    this.#size = 0
    this.book.clear()
    this.#count = count
  }

  #numberOf(id: string): number | undefined {
    return this.#names.find(id, (number) => this.#read(number)?.id === id)
  }

  #newest(
    name: string,
    isWanted: (operation: SimulatedOperation) => boolean,
  ): SimulatedOperation | undefined {
    let found: SimulatedOperation | undefined
    this.#names.find(name, (number) => {
      const operation = this.#read(number)
      if (!operation || !isWanted(operation)) return false
      found = operation
      return true
    })
    return found
  }

  #read(number: number): SimulatedOperation | undefined {
    return this.#pending.get(number) ?? this.#decided.get(number) ?? this.#readFromJournal(number)
  }

  #readFromJournal(number: number): SimulatedOperation | undefined {
    const change = this.#journal.read(this.#lines[number] ?? 0)[this.#positions[number] ?? 0]
    return change && 'operation' in change ? change.operation : undefined
  }

  #rows(numbers: Iterable<number>): SimulatedOperation[] {
    return [...numbers].flatMap((number) => this.#read(number) ?? [])
  }
}

function hasReference(operation: SimulatedOperation, operator: OperatorKey, reference: string): boolean {
  return operation.operator === operator && operation.clientReference === reference
}

function listIn(lists: Map<string, number[]>, key: string): number[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

function keepLast(list: number[], number: number, most: number): void {
  list.push(number)
  if (list.length > most) list.shift()
}
