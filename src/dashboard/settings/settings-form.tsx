import { useClient } from '@urql/preact'
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import {
  type SettingsFieldsFragment,
  type UpdateSettingsInput,
  updateSettingsMutation,
} from '../operations.ts'
import { doubtSession } from '../session.ts'
import { useSave } from '../use-save.ts'
import { useSettingsWords } from './words.ts'

/** The settings as the forms show them. */
export type Settings = SettingsFieldsFragment

const fields = [
  'businessName',
  'locale',
  'notificationEmail',
  'businessPhone',
  'businessAddress',
  'timeZone',
  'payoutsRequireApproval',
  'approvalThreshold',
  'approvalsRequired',
  'approvalsCoverDeposits',
  'ipWhitelist',
] as const
export type SettingsField = (typeof fields)[number]

/** One of the forms of the settings. */
export interface OneForm {
  isSaved: boolean
  /** Whether the last saving made a change that waits for an approval. */
  isWaiting: boolean
  isSending: boolean
  /** The problem of the form as a whole. */
  problem: string | undefined
  problemOf: (field: SettingsField) => string | undefined
  /** Shows that a field is wrong. */
  refuse: (field: SettingsField) => void
  /** Writes the settings that are not as they were. */
  save: (settings: UpdateSettingsInput) => void
}

/**
 * Saves a part of the settings. Settings that the person did not change are not sent: another window may have
 * changed them.
 */
export function useSettingsForm(settings: Settings, onSaved: () => void): OneForm {
  const { wrong, approvals } = useSettingsWords()
  const client = useClient()
  const [isSaved, setSaved] = useState(false)
  const [found, find] = useState<SettingsField | null>(null)
  const start = useRef<UpdateSettingsInput>(settings)
  const [isWaiting, setWaiting] = useState(false)
  const [isConflict, setConflict] = useState(false)
  const update = async (input: UpdateSettingsInput) => {
    const answer = await client.mutation(updateSettingsMutation, { input }).toPromise()
    const result = answer.data?.updateSettings
    setConflict(result?.__typename === 'StateConflictError')
    if (result?.__typename !== 'Settings') return answer
    const waiting = result.pendingChange?.id
    const waits = waiting !== undefined && waiting !== settings.pendingChange?.id
    setWaiting(waits)
    // The fields that the person did not change stay as the form shows them, also if they are others by now.
    if (!waits) start.current = { ...start.current, ...input }
    return answer
  }
  const { isSending, refused, save } = useSave(fields, update, () => {
    setSaved(true)
    onSaved()
    // The frame of the page shows the name, and every page counts days in the time zone.
    doubtSession()
  })
  const given = found ?? (typeof refused === 'string' ? refused : null)
  const isChanged = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(start.current[name as SettingsField])
  return {
    isSaved,
    isWaiting,
    isSending,
    problem:
      refused === null || typeof refused === 'string'
        ? undefined
        : isConflict
          ? approvals.conflict
          : refused.text,
    problemOf: (field) => (given === field ? wrong[field] : undefined),
    refuse: find,
    save(input) {
      find(null)
      setSaved(false)
      setWaiting(false)
      const changed = Object.fromEntries(Object.entries(input).filter(isChanged))
      if (Object.keys(changed).length === 0) setSaved(true)
      else void save(changed)
    },
  }
}

interface FormCardProps {
  title: string
  /** The words after the settings were saved. */
  saved?: string
  form: OneForm
  onSubmit: () => void
  children: ComponentChildren
}

/** The frame of a form of the settings: its fields, how it ended, and its button. */
export function FormCard({ title, saved, form, onSubmit, children }: FormCardProps) {
  const words = useSettingsWords()
  return (
    <section className="card">
      <h2>{title}</h2>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (!form.isSending) onSubmit()
        }}
      >
        {children}
        {form.problem && (
          <p className="problem" role="alert">
            {form.problem}
          </p>
        )}
        <p role="status">{form.isSaved ? (saved ?? words.saved) : ''}</p>
        <button aria-disabled={form.isSending}>{words.save}</button>
      </form>
    </section>
  )
}
