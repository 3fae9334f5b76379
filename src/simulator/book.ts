import type { JournalEntry, EntryType, OperatorKey, Transfer } from './model.ts'
import { operatorKeys } from './model.ts'
import { PoolLines } from './pool-lines.ts'

/** The account of our float at the operator. */
export const pool = 'pool'
/** The account of the operator's earnings. */
export const fees = 'fees'
/** The account that issues electronic money; only this account may be below zero. */
export const issuer = 'issuer'
/** Returns the account of a customer. */
export const wallet = (msisdn: string): string => `wallet:${msisdn}`

const openingWallet = 1_000_000n
const openingPool = 50_000_000n

interface OperatorBook {
  readonly balances: Map<string, bigint>
  readonly poolLines: PoolLines
  /** The number of entries; the journal holds them. */
  entries: number
  /** The sum of all balances; it must be zero. */
  total: bigint
}

/** A set of transfers for one operation. */
export interface Posting {
  readonly operator: OperatorKey
  readonly at: number
  readonly type: EntryType
  readonly operationId: string
  readonly transfers: readonly Transfer[]
}

/** The operators' own double-entry books, one for each operator. */
export class Book {
  readonly #books = new Map<OperatorKey, OperatorBook>(operatorKeys.map((key) => [key, emptyBook()]))

  /** Returns the francs on an account; null for an account that was never used. */
  balance(operator: OperatorKey, account: string): bigint | null {
    return this.#of(operator).balances.get(account) ?? null
  }

  /** Returns every account with its francs. */
  accounts(operator: OperatorKey): ReadonlyMap<string, bigint> {
    return this.#of(operator).balances
  }

  /** Returns all movements of our float, oldest first. */
  poolLines(operator: OperatorKey): PoolLines {
    return this.#of(operator).poolLines
  }

  /** Returns the opening entry of an account that was never used; otherwise an empty list. */
  opening(operator: OperatorKey, account: string, at: number): JournalEntry[] {
    return this.#draft(operator, at).open(account).entries
  }

  /**
   * Prepares the entries of a posting and writes nothing.
   * @param cover `cover`: the issuer adds the money that an account lacks, so that test customers never run
   * out
   * @returns null if an account has too little money and `cover` is `refuse`
   */
  prepare(posting: Posting, cover: 'cover' | 'refuse'): JournalEntry[] | null {
    const draft = this.#draft(posting.operator, posting.at)
    for (const { from, to, amount } of posting.transfers) {
      draft.open(from).open(to)
      const short = from === issuer ? 0n : BigInt(amount) - draft.balance(from)
      if (short > 0n && cover === 'refuse') return null
      if (short > 0n) draft.topUp(from, short)
      draft.move({ from, to, amount })
    }
    const poolAfter = draft.balance(pool)
    if (BigInt.asIntN(64, poolAfter) !== poolAfter) throw new Error('The float would not fit into 64 bits.')
    draft.add(posting.type, posting.operationId, posting.transfers)
    return draft.entries
  }

  /**
   * Writes an entry.
   * @param operation the number of its operation in the store
   * @throws Error when it would break the book
   */
  apply(entry: JournalEntry, operation: number | null = null): void {
    const book = this.#of(entry.operator)
    if (entry.seq !== book.entries + 1)
      throw new Error(`Entry ${entry.seq} of ${entry.operator} is out of order.`)
    let moved = 0n
    let fee = 0n
    for (const { from, to, amount } of entry.transfers) {
      const francs = BigInt(amount)
      if (francs < 0n || from === to)
        throw new Error(`Entry ${entry.seq} of ${entry.operator} has an invalid transfer.`)
      this.#add(book, from, -francs)
      this.#add(book, to, francs)
      const change = to === pool ? francs : from === pool ? -francs : 0n
      if (from === fees || to === fees) fee += change
      else moved += change
    }
    for (const { from } of entry.transfers) {
      if (from !== issuer && (book.balances.get(from) ?? 0n) < 0n)
        throw new Error(`The account ${from} would be below zero.`)
    }
    if (book.total !== 0n) throw new Error(`The book of ${entry.operator} does not sum to zero.`)
    book.entries += 1
    if (moved === 0n && fee === 0n) return
    const { seq, at, type } = entry
    const balanceAfter = book.balances.get(pool) ?? 0n
    book.poolLines.push({ seq, at, type, operation, amount: moved, fee, balanceAfter })
  }

  /**
   * Compares the balances with the sums of all entries.
   * @returns the problems; an empty list means that the book is right
   */
  verify(operator: OperatorKey, sums: AccountSums): string[] {
    const book = this.#of(operator)
    const problems: string[] = []
    let total = 0n
    for (const [account, balance] of book.balances) {
      total += balance
      if (balance !== (sums.get(account) ?? 0n))
        problems.push(`${account}: ${balance} is not the sum of its entries`)
      if (account !== issuer && balance < 0n) problems.push(`${account}: ${balance} is below zero`)
    }
    if (total !== 0n) problems.push(`all accounts: sum ${total}, not zero`)
    let lines = 0n
    for (const { amount, fee } of book.poolLines) lines += amount + fee
    if (lines !== (book.balances.get(pool) ?? 0n)) problems.push(`${pool}: statement lines sum to ${lines}`)
    return problems
  }

  clear(): void {
    for (const key of operatorKeys) this.#books.set(key, emptyBook())
  }

  #draft(operator: OperatorKey, at: number): Draft {
    const book = this.#of(operator)
    return new Draft(operator, at, book.balances, book.entries)
  }

  #add(book: OperatorBook, account: string, francs: bigint): void {
    book.balances.set(account, (book.balances.get(account) ?? 0n) + francs)
    book.total += francs
  }

  #of(operator: OperatorKey): OperatorBook {
    const book = this.#books.get(operator)
    if (!book) throw new Error(`No book of ${operator}.`)
    return book
  }
}

export type AccountSums = Map<string, bigint>

/** Adds the transfers of an entry to the sums of its accounts. */
export function addUp(sums: AccountSums, { transfers }: JournalEntry): void {
  for (const { from, to, amount } of transfers) {
    sums.set(from, (sums.get(from) ?? 0n) - BigInt(amount))
    sums.set(to, (sums.get(to) ?? 0n) + BigInt(amount))
  }
}

/** Entries in preparation, with the balances that would result. */
class Draft {
  readonly entries: JournalEntry[] = []
  readonly #operator: OperatorKey
  readonly #at: number
  readonly #before: ReadonlyMap<string, bigint>
  readonly #changed = new Map<string, bigint>()
  readonly #written: number

  constructor(operator: OperatorKey, at: number, before: ReadonlyMap<string, bigint>, written: number) {
    this.#operator = operator
    this.#at = at
    this.#before = before
    this.#written = written
  }

  balance(account: string): bigint {
    return this.#changed.get(account) ?? this.#before.get(account) ?? 0n
  }

  open(account: string): this {
    if (account === issuer || account === fees) return this
    if (this.#before.has(account) || this.#changed.has(account)) return this
    const opening = account === pool ? openingPool : openingWallet
    this.#issue('opening', account, opening)
    return this
  }

  /** Adds the missing money to an account, rounded up to a multiple of its opening amount. */
  topUp(account: string, short: bigint): void {
    const unit = account === pool ? openingPool : openingWallet
    this.#issue('top_up', account, ((short + unit - 1n) / unit) * unit)
  }

  move({ from, to, amount }: Transfer): void {
    this.#changed.set(from, this.balance(from) - BigInt(amount))
    this.#changed.set(to, this.balance(to) + BigInt(amount))
  }

  add(type: EntryType, operationId: string | null, transfers: readonly Transfer[]): void {
    const seq = this.#written + this.entries.length + 1
    this.entries.push({ seq, operator: this.#operator, at: this.#at, type, operationId, transfers })
  }

  #issue(type: EntryType, account: string, francs: bigint): void {
    const transfer = { from: issuer, to: account, amount: String(francs) }
    this.add(type, null, [transfer])
    this.move(transfer)
  }
}

function emptyBook(): OperatorBook {
  return { balances: new Map(), poolLines: new PoolLines(), entries: 0, total: 0n }
}
