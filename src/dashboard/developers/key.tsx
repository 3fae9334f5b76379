import { useMutation } from '@urql/preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatInstant, formatMoment, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import {
  type IssuedFragment,
  type KeyFragment,
  keyQuery,
  renewKeyMutation,
  revokeKeyMutation,
} from '../operations.ts'
import { Confirmation } from '../parts/confirmation.tsx'
import { Facts } from '../parts/facts.tsx'
import { isId, Missing } from '../parts/missing.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { problemText } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { KeyState } from './overview.tsx'
import { Secret } from './secret.tsx'
import { useOnce } from './use-once.ts'
import { useDeveloperWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

/** One API key: its rights and limits, and the ways to renew and to revoke it. */
export function KeyScreen({ id }: { id: string }) {
  const words = useDeveloperWords()
  return (
    <>
      <p>
        <Link href="/developers">‹ {words.back}</Link>
      </p>
      {isId(id) ? <Key id={id} /> : <Missing text={words.keys.missing} />}
    </>
  )
}

function Key({ id }: { id: string }) {
  const { keys: words } = useDeveloperWords()
  const { data, error, again } = useSteadyQuery(keyQuery, { id: globalIdOf(id) })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const { node: key } = data
  if (!key || !('id' in key)) return <Missing text={words.missing} />
  return (
    <>
      {error && <Stale retry={again} />}
      <KeyCard apiKey={key} again={again} />
    </>
  )
}

/** Makes the global id of a key: the service has no query of a key by its id in REST. */
const globalIdOf = (id: string): string => btoa(`ApiKey:${id}`)

function KeyCard({ apiKey, again }: { apiKey: KeyFragment; again: () => void }) {
  const { keys: words } = useDeveloperWords()
  const { name, prefix, lastFour, suspendedAt, revokedAt } = apiKey
  return (
    <section className="card request">
      <h1>
        <bdi>{name}</bdi>
      </h1>
      <p>
        <code>
          {prefix}…{lastFour}
        </code>{' '}
        <KeyState apiKey={apiKey} />
      </p>
      {suspendedAt !== null && revokedAt === null && <p>{words.suspendedText}</p>}
      <KeyFacts apiKey={apiKey} />
      {revokedAt === null && <Changes apiKey={apiKey} again={again} />}
    </section>
  )
}

function KeyFacts({ apiKey }: { apiKey: KeyFragment }) {
  const { keys: words, scopes, never } = useDeveloperWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { lastUsedAt, lastUsedFrom, createdAt, expiresAt, issuedTo, limits } = apiKey
  const amount = (limit: number | null | undefined) => limit != null && formatXof(limit, language)
  return (
    <Facts
      facts={[
        [words.scopes, apiKey.scopes.map((scope) => scopes[scope]).join(' · ')],
        [words.maxPerPayment, amount(limits?.maxPerPayment)],
        [words.maxPerDay, amount(limits?.maxPerDay)],
        [words.operators, limits?.paymentMethods?.map(operatorLabel).join(', ')],
        [words.addresses, limits?.addresses?.join(', ')],
        [words.issuedTo, issuedTo && <bdi>{issuedTo.name}</bdi>],
        [words.created, formatMoment(createdAt, language, timeZone)],
        [words.expires, expiresAt === null ? never : formatInstant(expiresAt, language, timeZone)],
        [
          words.use,
          lastUsedAt === null
            ? words.neverUsed
            : words.lastUsed(formatMoment(lastUsedAt, language, timeZone), lastUsedFrom),
        ],
      ]}
    />
  )
}

function Changes({ apiKey: { id, expiresAt }, again }: { apiKey: KeyFragment; again: () => void }) {
  const hasEnded = expiresAt !== null && Date.parse(expiresAt) <= Date.now()
  const { keys: words, secret } = useDeveloperWords()
  const common = useWords()
  const [problem, setProblem] = useState<string>()
  const [issued, setIssued] = useState<IssuedFragment>()
  const [isRenewing, renew] = useOnce(renewKeyMutation)
  const [{ fetching: isRevoking }, revoke] = useMutation(revokeKeyMutation)
  const renewNow = async () => {
    const answer = await renew({ id })
    const result = answer?.data?.regenerateApiKey
    setProblem(problemText(answer?.error, result, common))
    if (result?.__typename === 'IssuedApiKey') setIssued(result)
    again()
  }
  const revokeNow = async () => {
    const { data, error } = await revoke({ id })
    setProblem(problemText(error, data?.revokeApiKey, common))
    again()
  }
  return (
    <>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {issued ? (
        <Secret
          values={[
            [secret.key, issued.key],
            [secret.secret, issued.secret],
          ]}
          onKept={() => setIssued(undefined)}
        />
      ) : (
        <>
          {!hasEnded && (
            <Confirmation name={words.renew} isSending={isRenewing} onConfirm={() => void renewNow()}>
              {words.renewText}
            </Confirmation>
          )}
          <Confirmation name={words.revoke} isSending={isRevoking} onConfirm={() => void revokeNow()}>
            {words.revokeText}
          </Confirmation>
        </>
      )}
    </>
  )
}
