import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatMoment } from '../format.ts'
import { useLanguage } from '../language.ts'
import { useMe } from '../me.ts'
import { type EndpointFragment, endpointsQuery, type KeyFragment, keysQuery } from '../operations.ts'
import { mode } from '../page-facts.ts'
import { PagesBar, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { NewEndpoint } from './new-endpoint.tsx'
import { Secret } from './secret.tsx'
import { useDeveloperWords } from './words.ts'

/** The keys of one page: most accounts have fewer. */
const pageSize = 20
/** The most addresses of an account: the service refuses more. */
const endpointsMax = 5

/** The keys that programs use, and the addresses that are notified. */
export function OverviewScreen() {
  const words = useDeveloperWords()
  const { mayChangeSettings, mayManageWebhooks } = useMe()
  return (
    <>
      <h1>{words.title}</h1>
      <p>{words.lead}</p>
      <p className="bar">
        {mayManageWebhooks && <Link href="/developers/events">{words.log.title}</Link>}
        {mode === 'sandbox' && <Link href="/developers/sandbox">{words.sandbox.title}</Link>}
      </p>
      <div className="home">
        {mayChangeSettings && <Keys />}
        {mayManageWebhooks && <Endpoints />}
      </div>
    </>
  )
}

function Keys() {
  const { keys: words, newer, older } = useDeveloperWords()
  const pages = usePages()
  const { data, error, again } = useSteadyQuery(keysQuery, {
    first: pageSize,
    ...(pages.after !== undefined && { after: pages.after }),
  })
  const keys = data?.apiKeys
  if (!keys) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <section className="card">
      <h2>{words.title}</h2>
      {error && <Stale retry={again} />}
      <p>
        <Link className="action" href="/developers/keys/new">
          {words.make}
        </Link>
      </p>
      {keys.nodes.length === 0 && <p>{words.none}</p>}
      <ul className="rows">
        {keys.nodes.map((key) => (
          <KeyRow key={key.id} apiKey={key} />
        ))}
      </ul>
      <PagesBar pages={pages} pageInfo={keys.pageInfo} words={{ newer, older }} />
    </section>
  )
}

function KeyRow({ apiKey }: { apiKey: KeyFragment }) {
  const { keys: words } = useDeveloperWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { databaseId, name, prefix, lastFour, lastUsedAt, lastUsedFrom } = apiKey
  return (
    <li>
      <div>
        <Link href={`/developers/keys/${databaseId}`} className="wide-link">
          <bdi>{name}</bdi>
        </Link>
        <p className="soft">
          <code>
            {prefix}…{lastFour}
          </code>{' '}
          ·{' '}
          {lastUsedAt === null
            ? words.neverUsed
            : words.lastUsed(formatMoment(lastUsedAt, language, timeZone), lastUsedFrom)}
        </p>
      </div>
      <KeyState apiKey={apiKey} />
    </li>
  )
}

/** The reason why a key does not work; nothing where it does. */
export function KeyState({ apiKey: { isActive, revokedAt, suspendedAt } }: { apiKey: KeyFragment }) {
  const { keys: words } = useDeveloperWords()
  if (isActive) return null
  const state = revokedAt !== null ? words.revoked : suspendedAt !== null ? words.suspended : words.expired
  return <span className="state">{state}</span>
}

function Endpoints() {
  const { endpoints: words, secret: secretWords } = useDeveloperWords()
  const { data, error, again } = useSteadyQuery(endpointsQuery, {})
  const [isOpen, open] = useState(false)
  // It stands beside the list and outside of the form, which a click closes and a fifth address ends.
  const [secret, setSecret] = useState<string>()
  const endpoints = data?.webhooks?.nodes
  if (!endpoints) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <section className="card">
      <h2>{words.title}</h2>
      <p className="soft">{words.lead}</p>
      {error && <Stale retry={again} />}
      {endpoints.length === 0 && <p>{words.none}</p>}
      <ul className="rows">
        {endpoints.map((endpoint) => (
          <EndpointRow key={endpoint.id} endpoint={endpoint} />
        ))}
      </ul>
      {secret !== undefined && (
        <Secret
          values={[[secretWords.signature, secret]]}
          onKept={() => {
            setSecret(undefined)
            open(false)
          }}
        />
      )}
      {secret === undefined && endpoints.length >= endpointsMax && <p className="soft">{words.full}</p>}
      {secret === undefined && endpoints.length < endpointsMax && (
        <details open={isOpen} onToggle={({ currentTarget }) => open(currentTarget.open)}>
          <summary>{words.make}</summary>
          {isOpen && (
            <NewEndpoint
              onMade={(made) => {
                setSecret(made)
                again()
              }}
              onRefused={again}
            />
          )}
        </details>
      )}
    </section>
  )
}

function EndpointRow({
  endpoint: { databaseId, url, isActive, failureCount },
}: {
  endpoint: EndpointFragment
}) {
  const { endpoints: words } = useDeveloperWords()
  return (
    <li className="below">
      <Link href={`/developers/webhooks/${databaseId}`} className="wide-link address">
        {url}
      </Link>
      <p className="soft">
        <span className="state">{isActive ? words.on : words.off}</span>{' '}
        {failureCount > 0 && words.failing(failureCount)}
      </p>
    </li>
  )
}
