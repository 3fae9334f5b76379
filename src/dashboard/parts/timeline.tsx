import { formatInstant } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import type { PaymentQuery } from '../operations.ts'

type Entry = NonNullable<PaymentQuery['transaction']>['timeline'][number]

/** The first status of an answer of an operator that is an error. */
const errorsFrom = 400
/** The time from which an answer of an operator is named slow (a choice). */
const slowMs = 1_000

/** The life of a payment, the oldest entry first. */
export function Timeline({ entries }: { entries: readonly Entry[] }) {
  const words = useWords()
  return (
    <section className="card">
      <h2>{words.payment.timeline}</h2>
      <ol className="timeline">
        {runsOf(entries).map((run, index) => (
          <TimelineEntry key={index} run={run} />
        ))}
      </ol>
    </section>
  )
}

/** Entries of one kind that follow each other, for example the questions to a slow operator. */
type Run = readonly [first: Entry, ...others: Entry[]]

function runsOf(entries: readonly Entry[]): Run[] {
  const runs: [Entry, ...Entry[]][] = []
  const nameOf = ({ kind, source, status, statusCode }: Entry) => [kind, source, status, statusCode].join()
  for (const entry of entries) {
    const run = runs.at(-1)
    if (run && nameOf(run[0]) === nameOf(entry)) run.push(entry)
    else runs.push([entry])
  }
  return runs
}

function TimelineEntry({ run }: { run: Run }) {
  const words = useWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const [{ at, kind, source, status }] = run
  const answer = run.map((entry) => answerText(entry, language, words.payment)).find((text) => text !== null)
  return (
    <li>
      <strong>
        {status
          ? words.payment.withStatus(words.payment.kinds[kind], words.statuses[status])
          : words.payment.kinds[kind]}
      </strong>
      <p className="soft">
        <time dateTime={at}>{formatInstant(at, language, timeZone)}</time> · {words.payment.sources[source]}
        {answer && ` · ${answer}`}
        {run.length > 1 && ` · ${words.payment.times(run.length)}`}
      </p>
    </li>
  )
}

/** Names the fault of an operator's answer: it is missing, an error, or late; null for a good answer. */
function answerText(
  { statusCode, durationMs }: Entry,
  language: string,
  words: ReturnType<typeof useWords>['payment'],
): string | null {
  if (durationMs === null) return null
  const seconds = secondsOf(durationMs, language)
  if (statusCode === null) return words.unanswered(seconds)
  if (statusCode >= errorsFrom) return words.error(statusCode)
  return durationMs >= slowMs ? words.slow(seconds) : null
}

function secondsOf(durationMs: number, language: string): string {
  return new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(durationMs / 1_000)
}
