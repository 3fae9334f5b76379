import { type Client, CombinedError } from '@urql/preact'
import {
  type HoldingsFragment,
  type StatementQuery,
  statementQuery,
  type StatementRowFragment,
} from '../operations.ts'
import { isShown } from './present.ts'

type Figures = NonNullable<StatementQuery['statement']>
type Line = StatementRowFragment

/** The part of a statement that was read. */
export interface OpenedStatement {
  /** The figures of the month as they were read last; null until they are there. */
  figures: Figures | null
  /** All lines from the first one to the last that was opened, also those that are not shown. */
  lines: readonly Line[]
  /** The cursor of the last line. */
  cursor: string | null
  hasMore: boolean
  /** Whether the balance after each line follows from the line before. */
  follows: boolean
  /** Whether that is so, and the last balance is the closing one. */
  addsUp: boolean
  /** The position in the event log before the first lines were read. */
  asOf: number | null
  /** The moment when the figures were read, in ISO 8601. */
  readAt: string
}

export const unopened: OpenedStatement = {
  figures: null,
  lines: [],
  cursor: null,
  hasMore: true,
  follows: true,
  addsUp: true,
  asOf: null,
  readAt: '',
}

/** The lines of one read: the most that the service gives at once. */
const pageSize = 100
/** How often lines that do not add up are read again. Choice: money rarely moves this often. */
const triesMax = 3

export interface StatementReader {
  /** Reads on until a line more is shown, or the month ends. */
  readMore: () => Promise<void>
  /** Reads the figures again, and the lines that came after the last one if that was the end. */
  refresh: () => Promise<void>
  /** Reads all lines, unless they are too many. @returns whether they are all there and add up */
  readAll: (linesMax: number) => Promise<boolean>
  end: () => void
}

interface ReaderEvents {
  /** More lines were asked for. */
  onBegin: () => void
  onRead: (opened: OpenedStatement) => void
  onFail: (error: CombinedError) => void
}

/** Opens the reader of one month. Its reads follow each other; after its end none of them is reported. */
export function openReader(
  client: Client,
  span: { from: string; to: string },
  { onBegin, onRead, onFail }: ReaderEvents,
): StatementReader {
  let opened = unopened
  let hasEnded = false
  let lastRead: Promise<unknown> = Promise.resolve()

  function inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const read = lastRead.then(act)
    lastRead = read
    return read
  }

  /** Reads the page after what was opened. @returns both together; null where the read failed */
  async function readOn(before: OpenedStatement, first = pageSize): Promise<OpenedStatement | null> {
    if (hasEnded) return null
    const variables = { ...span, first, after: before.cursor }
    const { data, error } = await client
      .query(statementQuery, variables, { requestPolicy: 'network-only' })
      .toPromise()
    if (hasEnded) return null
    if (data?.statement) return withPage(before, data.statement, data.asOfSequence)
    onFail(error ?? new CombinedError({ networkError: new Error('empty') }))
    return null
  }

  /** Reads page after page from the start, until as many lines are there as were opened. */
  async function readFromStart(count: number): Promise<OpenedStatement | null> {
    let read: OpenedStatement | null = { ...unopened, asOf: opened.asOf }
    do read = await readOn(read)
    while (read?.hasMore && read.lines.length < count)
    return read
  }

  /**
   * Keeps what was read. Money that moved while a page was read is in its lines or in its closing balance
   * alone: then the next page has it. A line that was committed late, before one that is there already, would
   * be missing: then the lines are read from the start.
   */
  async function keep(found: OpenedStatement | null): Promise<boolean> {
    let read = found
    for (let tries = 0; read && !read.addsUp && tries < triesMax; tries += 1)
      read =
        read.follows && tries === 0
          ? await readOn(read)
          : await readFromStart(Math.max(read.lines.length, opened.lines.length))
    if (!read) return false
    opened = read
    onRead(opened)
    return true
  }

  const readPage = async () => keep(await readOn(opened))

  return {
    // It waits its turn behind a read of the figures alone, whose end is not its own.
    readMore: () => {
      onBegin()
      return inTurn(async () => {
        const shown = opened.lines.filter(isShown).length
        do onBegin()
        while ((await readPage()) && opened.hasMore && opened.lines.filter(isShown).length === shown)
      })
    },
    refresh: () =>
      inTurn(async () => {
        if (opened.figures === null || !opened.hasMore) return void (await readPage())
        const next = await readOn(opened, 1)
        const { lines, cursor } = opened
        await keep(next?.addsUp ? { ...next, lines, cursor, hasMore: true } : next)
      }),
    readAll: (linesMax) =>
      inTurn(async () => {
        let isRead = await readPage()
        while (isRead && opened.hasMore && (opened.figures?.lines.totalCount ?? 0) <= linesMax)
          isRead = await readPage()
        return isRead && !opened.hasMore && opened.addsUp
      }),
    end: () => {
      hasEnded = true
    },
  }
}

function withPage(before: OpenedStatement, figures: Figures, asOf: number | null): OpenedStatement {
  const { nodes, pageInfo } = figures.lines
  const lines = [...before.lines, ...nodes]
  const hasMore = pageInfo.hasNextPage
  let { follows } = before
  let sum: HoldingsFragment = before.lines.at(-1)?.balanceAfter ?? figures.opening
  for (const line of nodes) {
    const { balanceAfter: after } = line
    follows &&= sum.available + line.availableChange === after.available
    follows &&= sum.reserved + line.reservedChange === after.reserved
    follows &&= sum.receivable + line.receivableChange === after.receivable
    sum = after
  }
  const { closing } = figures
  const isClosing = (['available', 'reserved', 'receivable'] as const).every(
    (each) => sum[each] === closing[each],
  )
  return {
    figures,
    lines,
    cursor: pageInfo.endCursor ?? before.cursor,
    hasMore,
    follows,
    addsUp: follows && (hasMore || isClosing),
    asOf: before.asOf ?? asOf,
    readAt: new Date().toISOString(),
  }
}
