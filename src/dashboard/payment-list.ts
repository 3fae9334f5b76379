import { type Client, CombinedError, useClient } from '@urql/preact'
import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks'
import { calmMs, useLiveness, usePaymentChanges } from './live.ts'
import {
  type PaymentRowFragment,
  type PaymentsQuery,
  type PaymentsQueryVariables,
  paymentsQuery,
  type TransactionFilter,
} from './operations.ts'
import { codeOf } from './refusals.ts'

/** The payments of one page. Choice: two screens of a telephone. */
const pageSize = 20

/** The pause before a read that failed is tried again. */
const retryMs = 5_000

type Row = PaymentRowFragment
type Page = NonNullable<PaymentsQuery['transactions']>

interface State {
  /** The payments that the person sees, the newest first. Each is in the list once. */
  rows: readonly Row[]
  /** The payments above them, which the person has not asked to see yet. */
  newer: readonly Row[]
  /** All payments of the filter; null until the first page is there. */
  total: number | null
  /** The cursor after the last row; null where the list ends there. */
  next: string | null
  /** The cursor before the newest payment, shown or not. */
  newest: string | null
  /** The position in the event log before the first page was read. */
  asOf: number | null
  isReading: boolean
  error: CombinedError | undefined
}

const emptyList: State = {
  rows: [],
  newer: [],
  total: null,
  next: null,
  newest: null,
  asOf: null,
  isReading: true,
  error: undefined,
}

type Action =
  | { type: 'reading' | 'show newer' | 'begin' }
  | { type: 'failed'; error: CombinedError }
  | { type: 'first' | 'older' | 'newer'; page: Page; asOf: number | null }
  | { type: 'changed' | 'entered'; row: Row }

/**
 * Returns the list after a step. A payment that changed keeps its position, also where it left the filter.
 */
export function listAfter(state: State, action: Action): State {
  switch (action.type) {
    case 'begin':
      return { ...emptyList, asOf: state.asOf }
    case 'reading':
      return { ...state, isReading: true, error: undefined }
    case 'failed':
      return { ...state, isReading: false, error: action.error }
    case 'show newer':
      return { ...state, rows: [...state.newer, ...state.rows], newer: [] }
    case 'changed': {
      const { row } = action
      const put = (rows: readonly Row[]) => rows.map((one) => (one.id === row.id ? row : one))
      return { ...state, rows: put(state.rows), newer: put(state.newer) }
    }
    case 'entered':
      return withEntered(state, action.row)
    case 'first':
    case 'older':
    case 'newer':
      return { ...withPage(state, action.type, action.page), asOf: state.asOf ?? action.asOf }
  }
}

function withPage(state: State, end: 'first' | 'older' | 'newer', page: Page): State {
  const { nodes, pageInfo, totalCount: total } = page
  const read = { ...state, total, isReading: false, error: undefined }
  const next = pageInfo.hasNextPage ? pageInfo.endCursor : null
  if (end === 'first') return { ...read, rows: nodes, newer: [], next, newest: pageInfo.startCursor }
  const known = new Set([...state.newer, ...state.rows].map(({ id }) => id))
  const added = nodes.filter(({ id }) => !known.has(id))
  if (end === 'older') return { ...read, rows: [...state.rows, ...added], next }
  return { ...read, newer: [...added, ...state.newer], newest: pageInfo.startCursor ?? state.newest }
}

/** Puts a payment that entered the filter at its position. Payments stand by their ids, the newest first. */
function withEntered(state: State, row: Row): State {
  const { rows, newer } = state
  if ([...newer, ...rows].some(({ id }) => id === row.id)) return state
  const isShown = newer.length === 0 || row.databaseId < (rows[0]?.databaseId ?? 0)
  const into = isShown ? rows : newer
  const index = into.findIndex(({ databaseId }) => databaseId < row.databaseId)
  const put = into.toSpliced(index < 0 ? into.length : index, 0, row)
  return isShown ? { ...state, rows: put } : { ...state, newer: put }
}

interface PaymentList extends State {
  /** Reads the next page of older payments. */
  readOlder: () => void
  /** Puts the newer payments on top of the list. */
  showNewer: () => void
  /** Reads again what could not be read. */
  retry: () => void
}

/** The list that was shown last. The page loads anew before another account is shown. */
let lastShown: { query: string; state: State } = { query: '', state: emptyList }

/** Returns the path of the list that was shown last. */
export function lastListPath(): string {
  return lastShown.query === '' ? '/payments' : `/payments?${lastShown.query}`
}

/** The mark that the browser keeps with the visit of a payment to which the list led. */
export const visitFromList = { isFromList: true }

/** Goes back to the list that led to this page, with its position; otherwise the link is followed. */
export function backToList(event: Event): void {
  if ((history.state as Partial<typeof visitFromList> | null)?.isFromList !== true) return
  event.preventDefault()
  history.back()
}

/** A person who comes back from one payment finds the list as it was; what changed since then follows. */
function stateAtFirst(query: string): State {
  const { query: before, state } = lastShown
  return before === query && state.total !== null
    ? { ...state, isReading: false, error: undefined }
    : emptyList
}

/**
 * Reads the payments of a filter page by page, and keeps them up to date: a change is shown in its row, and
 * new payments wait above the list, so that no row moves away under the finger of a person.
 * @param query the filter in the address of the list
 */
export function usePaymentList(query: string, filter: TransactionFilter): PaymentList {
  const client = useClient()
  const [state, step] = useReducer(listAfter, stateAtFirst(query))
  const latest = useRef(state)
  latest.current = state
  const isKnown = useRef(state.total !== null)
  const reader = useMemo(() => openReader(client, filter, step, latest), [client, query])
  useEffect(() => {
    if (!isKnown.current) {
      step({ type: 'begin' })
      void reader.readFirst()
    }
    isKnown.current = false
    return () => reader.end()
  }, [reader])
  useEffect(() => {
    lastShown = { query, state }
  })
  usePaymentChanges(state.asOf, (row) => {
    reader.notice(row)
    step({ type: 'changed', row })
    const { rows, newer } = latest.current
    if ([...rows, ...newer].some(({ id }) => id === row.id)) return
    void reader.readNewer()
    void reader.readEntered(row)
  })
  const { error } = state
  const liveness = useLiveness()
  const mayRetry = error !== undefined && codeOf(error) !== 'FORBIDDEN'
  useEffect(() => {
    if (!mayRetry) return undefined
    const timer = setTimeout(() => void reader.retry(), retryMs)
    return () => clearTimeout(timer)
  }, [error])
  // Only the return of the network is a reason to try at once: a service that refuses would be asked without
  // an end.
  useEffect(() => {
    if (mayRetry && liveness === 'live') void reader.retry()
  }, [liveness])
  return {
    ...state,
    readOlder: () => void reader.readOlder(),
    showNewer: () => step({ type: 'show newer' }),
    retry: () => void reader.retry(),
  }
}

/** Opens the reader of one filter. After its end no answer of it reaches the list. */
function openReader(
  client: Client,
  filter: TransactionFilter,
  step: (action: Action) => void,
  latest: { readonly current: State },
) {
  let hasEnded = false
  /** The read that failed last. */
  let failed: () => Promise<void> = readFirst
  let isReadingNewer = false
  let isMoreExpected = false
  let readsUnderWay = 0
  /** The payments that changed while a page was read: the page may have them as they were before. */
  const changed = new Map<string, Row>()

  const ask = (variables: PaymentsQueryVariables) =>
    client.query(paymentsQuery, variables, { requestPolicy: 'network-only' }).toPromise()

  async function read(
    end: 'first' | 'older' | 'newer',
    variables: PaymentsQueryVariables,
    again: () => Promise<void>,
  ): Promise<Page | null> {
    readsUnderWay += 1
    const answer = await ask({ filter, ...variables })
    readsUnderWay -= 1
    if (hasEnded) return null
    const found = answer.data?.transactions
    const page = found && { ...found, nodes: found.nodes.map((row) => changed.get(row.id) ?? row) }
    if (readsUnderWay === 0) changed.clear()
    if (page) step({ type: end, page, asOf: answer.data?.asOfSequence ?? null })
    else {
      failed = again
      step({ type: 'failed', error: answer.error ?? new CombinedError({ networkError: new Error('empty') }) })
    }
    return page ?? null
  }

  async function readFirst(): Promise<void> {
    step({ type: 'reading' })
    await read('first', { first: pageSize }, readFirst)
  }

  async function readOlder(): Promise<void> {
    const { isReading, next } = latest.current
    if (isReading || next === null) return
    step({ type: 'reading' })
    await read('older', { first: pageSize, after: next }, readOlder)
  }

  /** Reads the payments above the newest one. Those that come meanwhile are read afterwards, all at once. */
  async function readNewer(): Promise<void> {
    isMoreExpected = true
    if (isReadingNewer || latest.current.asOf === null) return
    isReadingNewer = true
    while (isMoreExpected && !hasEnded) {
      isMoreExpected = false
      await new Promise((resolve) => setTimeout(resolve, calmMs))
      const { newest } = latest.current
      const page =
        newest === null
          ? await read('first', { first: pageSize }, readNewer)
          : await read('newer', { last: pageSize, before: newest }, readNewer)
      isMoreExpected ||= newest !== null && page?.pageInfo.hasPreviousPage === true
    }
    isReadingNewer = false
  }

  /**
   * Reads a payment that may have entered the filter by its new status, where the list has older and newer
   * ones. Nothing else that a filter selects by changes in a payment.
   */
  async function readEntered(changedRow: Row): Promise<void> {
    const { databaseId, reference, status } = changedRow
    const { rows, newer, next } = latest.current
    const oldest = next === null ? 0 : (rows.at(-1)?.databaseId ?? 0)
    const isWithin = databaseId > oldest && databaseId < ([...newer, ...rows][0]?.databaseId ?? 0)
    if (hasEnded || !isWithin || !filter.status?.includes(status)) return
    const { data, error } = await ask({ filter: { ...filter, reference }, first: 1 })
    if (error) setTimeout(() => void readEntered(changedRow), retryMs)
    const [row] = data?.transactions?.nodes ?? []
    if (!hasEnded && row) step({ type: 'entered', row })
  }

  return {
    notice: (row: Row) => void (readsUnderWay > 0 && changed.set(row.id, row)),
    readEntered,
    readFirst,
    readOlder,
    readNewer,
    retry: () => failed(),
    end: () => {
      hasEnded = true
    },
  }
}
