import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { readAmount } from '../format.ts'
import { Field } from '../parts/field.tsx'
import { SelectField } from '../parts/select-field.tsx'
import { FormCard, type Settings, useSettingsForm } from './settings-form.tsx'
import { useSettingsWords } from './words.ts'

interface ApprovalsFormProps {
  settings: Settings
  /** How many other members can approve. */
  others: number
  again: () => void
}

/** Which payments other people must approve, and how many people. */
export function ApprovalsForm({ settings, others, again }: ApprovalsFormProps) {
  const { approvals: words } = useSettingsWords()
  const form = useSettingsForm(settings, again)
  const { payoutsRequireApproval, approvalThreshold, approvalsRequired, approvalsCoverDeposits } = settings
  const [isOn, switchOn] = useState(payoutsRequireApproval)
  const [threshold, setThreshold] = useState(String(approvalThreshold))
  const [required, setRequired] = useState(approvalsRequired)
  const [coversDeposits, coverDeposits] = useState(approvalsCoverDeposits)
  // The form shows the rules that hold, also while others wait.
  useEffect(() => {
    if (!form.isWaiting) return
    switchOn(payoutsRequireApproval)
    setThreshold(String(approvalThreshold))
    setRequired(approvalsRequired)
    coverDeposits(approvalsCoverDeposits)
  }, [form.isWaiting])
  const submit = () => {
    // The fields of rules that are off are not on the screen.
    if (!isOn) return form.save({ payoutsRequireApproval: false })
    const amount = readAmount(threshold)
    if (amount === null) return form.refuse('approvalThreshold')
    form.save({
      payoutsRequireApproval: true,
      approvalThreshold: amount,
      approvalsRequired: required,
      approvalsCoverDeposits: coversDeposits,
    })
  }
  return (
    <FormCard
      title={words.title}
      {...(form.isWaiting && { saved: words.asked })}
      form={form}
      onSubmit={submit}
    >
      <p className="soft">{words.lead}</p>
      {settings.pendingChange && (
        <p>
          {words.waits} <Link href="/approvals">{words.waiting}</Link>
        </p>
      )}
      <label className="check">
        <input type="checkbox" checked={isOn} onChange={() => switchOn(!isOn)} />
        {words.isOn}
      </label>
      {isOn && (
        <>
          <Field
            label={words.threshold}
            value={threshold}
            onValue={setThreshold}
            autoComplete="off"
            inputMode="numeric"
            problem={form.problemOf('approvalThreshold')}
          />
          <SelectField
            label={words.required}
            value={String(required)}
            onValue={(next) => setRequired(Number(next))}
            problem={form.problemOf('approvalsRequired')}
          >
            {[1, 2, 3].map((count) => (
              <option key={count} value={String(count)}>
                {count}
              </option>
            ))}
          </SelectField>
          <label className="check">
            <input type="checkbox" checked={coversDeposits} onChange={() => coverDeposits(!coversDeposits)} />
            {words.deposits}
          </label>
          {others < required && <TooFew required={required} others={others} />}
        </>
      )}
    </FormCard>
  )
}

function TooFew({ required, others }: { required: number; others: number }) {
  const { approvals: words } = useSettingsWords()
  return (
    <p className="alert" role="status">
      {required === 1 ? words.tooFewOne : words.tooFew(required, others)}{' '}
      <Link href="/team">{words.team}</Link>
    </p>
  )
}
