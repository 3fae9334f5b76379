import { useState } from 'preact/hooks'
import { Field } from '../parts/field.tsx'
import { FormCard, type Settings, useSettingsForm } from './settings-form.tsx'
import { useSettingsWords } from './words.ts'

/** The IP addresses that may use the account. */
export function AddressesForm({ settings, again }: { settings: Settings; again: () => void }) {
  const { addresses: words } = useSettingsWords()
  const form = useSettingsForm(settings, again)
  const [typed, type] = useState(settings.ipWhitelist.join('\n'))
  const submit = () => form.save({ ipWhitelist: typed.split(/[\s,;]+/).filter((address) => address !== '') })
  return (
    <FormCard title={words.title} form={form} onSubmit={submit}>
      <p className="soft">{words.lead}</p>
      <Field
        label={words.field}
        hint={words.hint}
        value={typed}
        onValue={type}
        autoComplete="off"
        isLong
        problem={form.problemOf('ipWhitelist')}
      />
    </FormCard>
  )
}
