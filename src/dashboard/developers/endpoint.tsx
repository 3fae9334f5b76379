import { useClient, useMutation } from '@urql/preact'
import { useRef, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { formatMoment } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import {
  type EndpointFragment,
  endpointQuery,
  removeEndpointMutation,
  rotateSecretMutation,
  sendSampleMutation,
  updateEndpointMutation,
  type UpdateWebhookInput,
  type WebhookDeliveryStatus,
} from '../operations.ts'
import { Activation } from '../parts/activation.tsx'
import { Confirmation } from '../parts/confirmation.tsx'
import { Facts } from '../parts/facts.tsx'
import { isId, Missing } from '../parts/missing.tsx'
import { useKept, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { problemText } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { useSave } from '../use-save.ts'
import { Deliveries } from './deliveries.tsx'
import { EndpointForm, endpointFields, type EndpointInput } from './endpoint-form.tsx'
import { Secret } from './secret.tsx'
import { useOnce } from './use-once.ts'
import { useDeveloperWords } from './words.ts'

/** One address that is notified: its state, its changes, and what was sent to it. */
export function EndpointScreen({ id }: { id: string }) {
  const words = useDeveloperWords()
  return (
    <>
      <p>
        <Link href="/developers">‹ {words.back}</Link>
      </p>
      {isId(id) ? <Endpoint id={id} /> : <Missing text={words.endpoints.missing} />}
    </>
  )
}

/** The deliveries of one page. */
const pageSize = 20

function Endpoint({ id }: { id: string }) {
  const { endpoints: words } = useDeveloperWords()
  const pages = usePages()
  const [status, setStatus] = useKept<WebhookDeliveryStatus | ''>('status', '')
  const { data, error, again } = useSteadyQuery(endpointQuery, {
    id,
    first: pageSize,
    ...(pages.after !== undefined && { after: pages.after }),
    ...(status !== '' && { status: [status] }),
  })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const { webhook } = data
  if (!webhook) return <Missing text={words.missing} />
  return (
    <>
      {error && <Stale retry={again} />}
      <div className="home">
        <section className="card">
          <h1 className="address">{webhook.url}</h1>
          <State endpoint={webhook} />
          <Changes endpoint={webhook} again={again} />
        </section>
        <Deliveries
          webhook={webhook}
          pages={pages}
          status={status}
          onStatus={(next) => {
            setStatus(next)
            pages.toFirst()
          }}
          again={again}
        />
      </div>
    </>
  )
}

function State({ endpoint }: { endpoint: EndpointFragment }) {
  const { endpoints: words, events } = useDeveloperWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { isActive, failureCount, disabledAt, pausedUntil, secretOverlapsUntil } = endpoint
  const moment = (at: string) => formatMoment(at, language, timeZone)
  const isAhead = (at: string | null): at is string => at !== null && Date.parse(at) > Date.now()
  return (
    <>
      <p role="status">
        <span className="state">{isActive ? words.on : words.off}</span>{' '}
        {failureCount > 0 && words.failing(failureCount)}
      </p>
      {!isActive && disabledAt !== null && <p>{words.disabled(moment(disabledAt))}</p>}
      {isAhead(pausedUntil) && <p>{words.paused(moment(pausedUntil))}</p>}
      {isAhead(secretOverlapsUntil) && <p className="soft">{words.overlap(moment(secretOverlapsUntil))}</p>}
      <Facts
        facts={[
          [words.events, endpoint.events.map((type) => events[type]).join(' · ')],
          [words.lastSuccess, endpoint.lastSuccessAt && moment(endpoint.lastSuccessAt)],
          [words.lastFailure, endpoint.lastFailureAt && moment(endpoint.lastFailureAt)],
        ]}
      />
    </>
  )
}

interface ChangesProps {
  endpoint: EndpointFragment
  again: () => void
}

function Changes({ endpoint, again }: ChangesProps) {
  const { endpoints: words, secret: secretWords } = useDeveloperWords()
  const [secret, setSecret] = useState<string>()
  const [said, say] = useState<{ text: string; isProblem: boolean }>()
  const actions = useActions(endpoint, (text, isProblem) => {
    say({ text, isProblem })
    again()
  })
  if (secret !== undefined)
    return <Secret values={[[secretWords.signature, secret]]} onKept={() => setSecret(undefined)} />
  return (
    <>
      {said && (
        <p className={said.isProblem ? 'problem' : ''} role={said.isProblem ? 'alert' : 'status'}>
          {said.text}
        </p>
      )}
      <button
        type="button"
        className="quiet"
        aria-disabled={actions.isSending}
        onClick={() => !actions.isSending && void actions.sendSample()}
      >
        {words.sample}
      </button>
      <Edit endpoint={endpoint} onSaved={again} />
      <Activation
        isActive={endpoint.isActive}
        words={{ end: words.end, endText: words.endText, begin: words.begin }}
        isSending={actions.isSending}
        onChange={(isActive) => void actions.activate(isActive)}
      />
      {([false, true] as const).map((oldEndsNow) => (
        <Confirmation
          key={String(oldEndsNow)}
          name={oldEndsNow ? words.rotateNow : words.rotate}
          isSending={actions.isSending}
          onConfirm={() => void actions.rotate(oldEndsNow).then(setSecret)}
        >
          {oldEndsNow ? words.rotateNowText : words.rotateText}
        </Confirmation>
      ))}
      <Confirmation name={words.remove} isSending={actions.isSending} onConfirm={() => void actions.remove()}>
        {words.removeText}
      </Confirmation>
    </>
  )
}

/** The changes of an address. @param say called with how each ended */
function useActions({ id }: EndpointFragment, say: (text: string, isProblem: boolean) => void) {
  const { endpoints: words } = useDeveloperWords()
  const common = useWords()
  const language = useLanguage()
  const [, goTo] = useLocation()
  const [{ fetching: isSampling }, sample] = useMutation(sendSampleMutation)
  const [{ fetching: isUpdating }, update] = useMutation(updateEndpointMutation)
  const [isRotating, rotateSecret] = useOnce(rotateSecretMutation)
  const [{ fetching: isRemoving }, removeEndpoint] = useMutation(removeEndpointMutation)

  async function sendSample(): Promise<void> {
    const { data, error } = await sample({ id })
    const result = data?.sendTestEvent
    if (result?.__typename === 'SampleDelivery') {
      const took = new Intl.NumberFormat(language).format(result.durationMs)
      return say(words.sampleSent(result.statusCode, took), !result.delivered)
    }
    say(problemText(error, result, common) ?? common.failure.unknown, true)
  }
  async function activate(isActive: boolean): Promise<void> {
    const { data, error } = await update({ id, input: { isActive } })
    const problem = problemText(error, data?.updateWebhook, common)
    say(problem ?? words.saved, problem !== undefined)
  }
  async function rotate(oldEndsNow: boolean): Promise<string | undefined> {
    const answer = await rotateSecret({ id, oldEndsNow })
    const result = answer?.data?.rotateWebhookSecret
    if (result?.__typename === 'WebhookSecret') return result.secret
    if (answer) say(problemText(answer.error, result, common) ?? common.failure.unknown, true)
    return undefined
  }
  async function remove(): Promise<void> {
    const { data, error } = await removeEndpoint({ id })
    const problem = problemText(error, data?.removeWebhook, common)
    if (problem === undefined) return goTo('/developers')
    say(problem, true)
  }
  const isSending = isSampling || isUpdating || isRotating || isRemoving
  return { isSending, sendSample, activate, rotate, remove }
}

function Edit({ endpoint, onSaved }: { endpoint: EndpointFragment; onSaved: () => void }) {
  const { endpoints: words, endpointForm } = useDeveloperWords()
  const client = useClient()
  // The address as it was when the form was opened; null while it is closed.
  const [start, setStart] = useState<EndpointInput | null>(null)
  const summary = useRef<HTMLElement>(null)
  const close = () => {
    setStart(null)
    summary.current?.focus()
  }
  const { id, url, events } = endpoint
  const send = (input: UpdateWebhookInput) =>
    client.mutation(updateEndpointMutation, { id, input }).toPromise()
  const { isSending, refused, save } = useSave(endpointFields, send, () => {
    close()
    onSaved()
  })
  const change = (from: EndpointInput, to: EndpointInput) => {
    const changes = changesOf(from, to)
    if (Object.keys(changes).length === 0) close()
    else void save(changes)
  }
  return (
    <details
      open={start !== null}
      onToggle={({ currentTarget: { open } }) =>
        setStart(open ? (start ?? { url, events: [...events] }) : null)
      }
    >
      <summary ref={summary}>{words.change}</summary>
      {start && (
        <EndpointForm
          start={start}
          send={endpointForm.save}
          isSending={isSending}
          refused={refused}
          onSend={(input) => change(start, input)}
        />
      )}
    </details>
  )
}

/** Returns what a person changed: another window may have changed what this form leaves as it was. */
function changesOf(from: EndpointInput, to: EndpointInput): UpdateWebhookInput {
  const sameEvents = String(from.events.toSorted()) === String(to.events.toSorted())
  return { ...(to.url !== from.url && { url: to.url }), ...(!sameEvents && { events: to.events }) }
}
