import { CombinedError, useClient } from '@urql/preact'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatPhone, formatXof } from '../format.ts'
import { useLanguage } from '../language.ts'
import { useCalm } from '../live.ts'
import { type RecipientsQuery, type RecipientStatus, recipientsQuery } from '../operations.ts'
import { Failure } from '../parts/states.tsx'
import { usePayrollWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

type Recipient = NonNullable<RecipientsQuery['batch']>['recipients']['nodes'][number]

interface RecipientListProps {
  batchId: string
  /** The states of the recipients that are shown; null for all. */
  statuses: readonly RecipientStatus[] | null
  /** How many recipients there are. */
  count: number
  /** Another version lets the list read again. */
  version: string
  /** Whether the payments have states that are worth a word. */
  hasStates: boolean
}

/** The height of a row in pixels: rows that are not drawn keep their room. */
const rowPx = 92
/** The height of a row with the reason of a failure. */
const reasonRowPx = 128
/** The rows that are drawn above and below those that are seen. */
const rowsAround = 10
/** The recipients of one read. */
const pageSize = 50

/**
 * A list of up to ten thousand recipients in the order of their file. Only the rows that are seen are read
 * and drawn.
 */
export function RecipientList(props: RecipientListProps) {
  const { statuses, hasStates } = props
  const count = useCalmCount(props.count)
  const list = useRef<HTMLOListElement>(null)
  const hasReasons = statuses?.includes('FAILED') === true
  const height = hasReasons ? reasonRowPx : rowPx
  const { from, to } = useSeenRows(list, count, height)
  const { rows, error, retry } = useRows({ ...props, count }, from, to)
  return (
    <>
      {error && <Failure error={error} retry={retry} />}
      <ol ref={list} className="recipients" style={{ height: `${count * height}px` }}>
        {Array.from({ length: Math.max(0, to - from) }, (_, index) => (
          <RecipientRow
            key={from + index}
            style={{ top: `${(from + index) * height}px`, height: `${height}px` }}
            aria-setsize={count}
            aria-posinset={from + index + 1}
            hasState={hasStates}
            hasReason={hasReasons}
            recipient={rows.get(from + index)}
          />
        ))}
      </ol>
    </>
  )
}

interface RecipientRowProps extends Pick<JSX.LiHTMLAttributes, 'style' | 'aria-setsize' | 'aria-posinset'> {
  hasState: boolean
  hasReason: boolean
  /** Undefined until it is read. */
  recipient: Recipient | undefined
}

function RecipientRow({ hasState, hasReason, recipient, ...row }: RecipientRowProps) {
  const words = usePayrollWords()
  const language = useLanguage()
  if (!recipient) return <li {...row}>…</li>
  const { name, account, paymentMethod, settledAmount, reversedAt, status, failure } = recipient
  const amount = settledAmount ?? recipient.amount
  return (
    <li {...row}>
      <strong className="line" dir="auto">
        {name}
      </strong>
      <span className="soft line">
        {formatPhone(account)} · {operatorLabel(paymentMethod)}
      </span>
      <p>
        <strong className="number">{formatXof(amount, language)}</strong>
        {hasState && (
          <span className={`state ${reversedAt ? 'bad' : (tones[status] ?? '')}`}>
            {reversedAt ? words.reversed : words.recipientStatuses[status]}
          </span>
        )}
      </p>
      {hasReason && failure && (
        <span className="problem reason">{language === 'fr' ? failure.messageFr : failure.messageEn}</span>
      )}
    </li>
  )
}

const tones: Readonly<Partial<Record<RecipientStatus, string>>> = {
  SUCCESS: 'good',
  FAILED: 'bad',
  CANCELLED: 'over',
}

/** The pause before a list follows the number of its recipients, in milliseconds. */
const countPauseMs = 2_000

/** Follows a number with a pause: the list is read again for each number that it is given. */
function useCalmCount(present: number): number {
  const [count, setCount] = useState(present)
  const follow = useCalm(() => setCount(present), countPauseMs)
  useEffect(follow, [present])
  return count
}

/** Follows the rows that the reader sees, and some around them. */
function useSeenRows(list: { readonly current: HTMLElement | null }, count: number, height: number) {
  const [seen, setSeen] = useState({ from: 0, to: Math.min(count, 2 * rowsAround) })
  useEffect(() => {
    const look = () => {
      const top = list.current?.getBoundingClientRect().top ?? 0
      const from = Math.max(0, Math.floor(-top / height) - rowsAround)
      const last = Math.ceil((innerHeight - top) / height) + rowsAround
      // Some rows are there also where the list is below the end of the screen.
      const to = Math.min(count, Math.max(last, from + 2 * rowsAround))
      setSeen((before) => (before.from === from && before.to === to ? before : { from, to }))
    }
    look()
    for (const name of ['scroll', 'resize']) addEventListener(name, look, { passive: true })
    // The list moves where a part of the page above it comes or goes.
    const page = new ResizeObserver(look)
    page.observe(document.body)
    return () => {
      for (const name of ['scroll', 'resize']) removeEventListener(name, look)
      page.disconnect()
    }
  }, [count, height])
  return seen
}

/** The pause in which a reader who scrolls fast passes pages that need not be read, in milliseconds. */
const restMs = 80

/** Reads the pages of the rows from one position to another, and again where the version changed. */
function useRows(props: RecipientListProps, from: number, to: number) {
  const { batchId, statuses, count, version } = props
  const client = useClient()
  const [rows, setRows] = useState<ReadonlyMap<number, Recipient>>(new Map())
  const [error, setError] = useState<CombinedError>()
  const [tries, setTries] = useState(0)
  /** The pages that were read or are being read, for one version of the list. */
  const read = useRef({ version: '', pages: new Set<number>() })

  async function readPage(page: number): Promise<void> {
    const start = page * pageSize
    const end = Math.min(count, start + pageSize)
    // The service lists the newest recipient first, which is the last line of the file.
    const variables = {
      id: batchId,
      first: end - start,
      offset: count - end,
      ...(statuses && { filter: { status: [...statuses] } }),
    }
    const asked = read.current
    const { data, error: failed } = await client
      .query(recipientsQuery, variables, { requestPolicy: 'network-only' })
      .toPromise()
    // A later read may have been answered before: its positions are others.
    if (read.current !== asked) return
    const found = data?.batch?.recipients.nodes
    if (!found) {
      read.current.pages.delete(page)
      setError(failed ?? new CombinedError({ networkError: new Error('empty') }))
      return
    }
    setError(undefined)
    setRows((before) => {
      const after = new Map(before)
      for (const [index, recipient] of found.toReversed().entries()) after.set(start + index, recipient)
      return after
    })
  }

  useEffect(() => {
    const present = `${version} ${count}`
    if (read.current.version !== present) read.current = { version: present, pages: new Set() }
    const timer = setTimeout(() => {
      for (let page = Math.floor(from / pageSize); page * pageSize < to; page += 1) {
        if (read.current.pages.has(page)) continue
        read.current.pages.add(page)
        void readPage(page)
      }
    }, restMs)
    return () => clearTimeout(timer)
  }, [from, to, version, count, tries])
  return { rows, error, retry: () => setTries(tries + 1) }
}
