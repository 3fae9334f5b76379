import { useEffect, useRef, useState } from 'preact/hooks'
import { secondFactorQuery } from '../operations.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { RecoveryCodes } from './recovery-codes.tsx'
import { ConfirmForm, StartForm, StopForm } from './second-factor-forms.tsx'
import { useSecurityWords } from './words.ts'

/** The step of setting the second factor up. */
type Step =
  | { name: 'idle' | 'password' | 'stopping' }
  | { name: 'scanning'; secret: string; uri: string }
  | { name: 'codes'; codes: readonly string[] }

/** Switches the second factor of the person on and off. */
export function SecondFactor() {
  const { factor: words } = useSecurityWords()
  const { data, error, again } = useSteadyQuery(secondFactorQuery, {})
  const [step, goTo] = useState<Step>({ name: 'idle' })
  const [ended, setEnded] = useState<'stopped' | 'without codes'>()
  const isOn = data?.me?.member?.hasSecondFactor === true || step.name === 'codes'
  // In another window, or by a request whose answer was lost.
  const isDoneElsewhere = isOn
    ? step.name === 'password' || step.name === 'scanning'
    : step.name === 'stopping'
  useEffect(() => {
    if (!isDoneElsewhere) return
    if (step.name === 'scanning') setEnded('without codes')
    if (step.name === 'stopping') setEnded('stopped')
    goTo({ name: 'idle' })
  }, [isDoneElsewhere])
  const toIdle = () => {
    goTo({ name: 'idle' })
    again()
  }
  const begin = useFocusAfter(step.name !== 'idle')
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const whenOn = ended === 'without codes' ? words.withoutCodes : words.isOn
  const whenOff = ended === 'stopped' ? words.stopped : words.isOff
  return (
    <section className="card">
      <h2>{words.title}</h2>
      <p className="soft">{words.lead}</p>
      <p role="status">{isOn ? whenOn : whenOff}</p>
      {step.name === 'idle' && (
        <button
          type="button"
          className="quiet"
          ref={begin}
          onClick={() => {
            setEnded(undefined)
            goTo({ name: isOn ? 'stopping' : 'password' })
          }}
        >
          {isOn ? words.stop : words.start}
        </button>
      )}
      {step.name === 'password' && (
        <StartForm onDone={(setup) => goTo({ name: 'scanning', ...setup })} onProblem={again} />
      )}
      {step.name === 'scanning' && (
        <ConfirmForm
          secret={step.secret}
          uri={step.uri}
          onDone={(codes) => {
            goTo({ name: 'codes', codes })
            again()
          }}
          onProblem={again}
        />
      )}
      {step.name === 'codes' && <RecoveryCodes codes={step.codes} onKept={toIdle} />}
      {step.name === 'stopping' && (
        <StopForm
          onDone={() => {
            setEnded('stopped')
            toIdle()
          }}
          onProblem={again}
        />
      )}
      {step.name !== 'idle' && step.name !== 'codes' && (
        <button type="button" className="quiet" onClick={toIdle}>
          {words.cancel}
        </button>
      )}
    </section>
  )
}

/** Gives the focus to a button when the steps that it began have ended. */
function useFocusAfter(isBusy: boolean) {
  const button = useRef<HTMLButtonElement>(null)
  const wasBusy = useRef(false)
  useEffect(() => {
    if (wasBusy.current && !isBusy) button.current?.focus()
    wasBusy.current = isBusy
  }, [isBusy])
  return button
}
