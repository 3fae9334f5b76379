import { Link } from 'wouter-preact'
import { formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useLinkUses } from '../live.ts'
import { useMe } from '../me.ts'
import { type LinkFactsFragment, linksQuery } from '../operations.ts'
import { PagesBar, useKept, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { useLinkWords } from './words.ts'

/** The links of one page. Choice: two screens of a telephone. */
const pageSize = 20

/** The payment links, the newest first, live, and the way to a new one. */
export function LinksScreen() {
  const words = useLinkWords()
  const { mayMakeLinks } = useMe()
  const [activeOnly, setActiveOnly] = useKept('activeOnly', true)
  const pages = usePages()
  const page = useSteadyQuery(linksQuery, {
    first: pageSize,
    activeOnly,
    ...(pages.after !== undefined && { after: pages.after }),
  })
  const { data, error, again } = page
  useLinkUses(null, data?.asOfSequence, again)
  const links = data?.paymentLinks
  return (
    <>
      <h1>{useWords().links}</h1>
      {mayMakeLinks && (
        <p>
          <Link href="/links/new" className="action">
            {words.start}
          </Link>
        </p>
      )}
      {!links && (error ? <Failure error={error} retry={again} /> : <Loading />)}
      {links && error && <Stale retry={again} />}
      {links && (
        <section className="card">
          {links.totalCount === 0 && <p>{activeOnly ? words.noneOpen : words.none}</p>}
          {links.totalCount === 0 && <p className="soft">{words.lead}</p>}
          <ul className="rows">
            {links.nodes.map((link) => (
              <LinkRow key={link.id} link={link} />
            ))}
          </ul>
          <PagesBar pages={pages} pageInfo={links.pageInfo} words={words} />
          <label className="check">
            <input
              type="checkbox"
              checked={!activeOnly}
              onChange={() => {
                setActiveOnly(!activeOnly)
                pages.toFirst()
              }}
            />
            {words.all}
          </label>
        </section>
      )}
    </>
  )
}

function LinkRow({ link }: { link: LinkFactsFragment }) {
  const words = useLinkWords()
  const language = useLanguage()
  const number = new Intl.NumberFormat(language)
  const { databaseId, title, amount, usageCount, usageLimit } = link
  const limit = usageLimit === null ? null : number.format(usageLimit)
  return (
    <li>
      <div>
        <Link href={`/links/${databaseId}`} className="wide-link reference">
          <bdi>{title}</bdi>
        </Link>
        <p className="soft">{words.paidTimes(number.format(usageCount), limit)}</p>
      </div>
      <div className="end">
        <strong className="number">{amount === null ? words.anyAmount : formatXof(amount, language)}</strong>
        <p>
          <AvailabilityBadge availability={link.availability} />
        </p>
      </div>
    </li>
  )
}

/** Whether a link accepts a payment, in one word with its colour. */
export function AvailabilityBadge({ availability }: Pick<LinkFactsFragment, 'availability'>) {
  const words = useLinkWords()
  const tone = availability === 'OPEN' ? 'good' : 'over'
  return <span className={`state ${tone}`}>{words.availabilities[availability]}</span>
}
