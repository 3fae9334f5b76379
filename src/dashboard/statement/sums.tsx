import { formatXof } from '../format.ts'
import { useLanguage } from '../language.ts'
import type { StatementQuery } from '../operations.ts'
import { useStatementWords } from './words.ts'

interface SumsProps {
  figures: NonNullable<StatementQuery['statement']>
  /** Whether money may still move in the month. */
  isRunning: boolean
}

/** The four figures of a month, as an addition that a person can check by eye. */
export function Sums({ figures, isRunning }: SumsProps) {
  const words = useStatementWords()
  const language = useLanguage()
  const { opening, closing, totalIn, totalOut } = figures
  const number = new Intl.NumberFormat(language)
  const written = [opening.balance, totalIn, totalOut, closing.balance].map((sum) => number.format(sum))
  const rows = [
    ['', words.opening, opening.balance],
    ['+', words.in, totalIn],
    ['\u2212', words.out, totalOut],
    ['=', isRunning ? words.now : words.closing, closing.balance],
  ] as const
  return (
    <section className="card request" aria-label={words.sums}>
      <dl className="sums">
        {rows.map(([sign, name, sum]) => (
          <div key={name}>
            <dt>
              <span className="sign" aria-hidden="true">
                {sign}
              </span>{' '}
              {name}
            </dt>
            <dd className="number">{formatXof(sum, language)}</dd>
          </div>
        ))}
      </dl>
      <p className="soft">
        {written[0]} + {written[1]} − {written[2]} = {written[3]}
      </p>
      <Extra name={words.reserved} sum={closing.reserved} />
      <Extra name={words.receivable} sum={closing.receivable} />
    </section>
  )
}

/** A figure beside the four, which most accounts do not have. */
function Extra({ name, sum }: { name: string; sum: number }) {
  const language = useLanguage()
  if (sum === 0) return null
  return (
    <p className="extra">
      {name} <strong className="number">{formatXof(sum, language)}</strong>
    </p>
  )
}
