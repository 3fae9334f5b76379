import { useState } from 'preact/hooks'
import type { Locale } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import { SelectField } from '../parts/select-field.tsx'
import { FormCard, type Settings, useSettingsForm } from './settings-form.tsx'
import { useSettingsWords } from './words.ts'

/** Every time zone that the browser knows, the one of the settings among them. */
const zonesWith = (own: string): readonly string[] => [
  ...new Set([own, ...Intl.supportedValuesOf('timeZone')]),
]

/** The name of the shop, its languages, its address and its days. */
export function ShopForm({ settings, again }: { settings: Settings; again: () => void }) {
  const { shop: words } = useSettingsWords()
  const form = useSettingsForm(settings, again)
  const { businessName, locale, notificationEmail, timeZone } = settings
  const [draft, setDraft] = useState({
    businessName,
    locale,
    notificationEmail: notificationEmail ?? '',
    timeZone,
  })
  const submit = () => {
    const name = draft.businessName.trim()
    if (name === '') return form.refuse('businessName')
    const address = draft.notificationEmail.trim()
    form.save({ ...draft, businessName: name, notificationEmail: address === '' ? null : address })
  }
  return (
    <FormCard title={words.title} form={form} onSubmit={submit}>
      <Field
        label={words.name}
        hint={words.nameHint}
        value={draft.businessName}
        onValue={(name) => setDraft({ ...draft, businessName: name })}
        autoComplete="organization"
        maxLength={200}
        problem={form.problemOf('businessName')}
      />
      <SelectField
        label={words.locale}
        value={draft.locale}
        onValue={(next) => setDraft({ ...draft, locale: next as Locale })}
        problem={form.problemOf('locale')}
      >
        {Object.entries(words.locales).map(([name, word]) => (
          <option key={name} value={name.toUpperCase()}>
            {word}
          </option>
        ))}
      </SelectField>
      <Field
        label={words.email}
        type="email"
        inputMode="email"
        value={draft.notificationEmail}
        onValue={(next) => setDraft({ ...draft, notificationEmail: next })}
        autoComplete="email"
        problem={form.problemOf('notificationEmail')}
      />
      <SelectField
        label={words.timeZone}
        value={draft.timeZone}
        onValue={(next) => setDraft({ ...draft, timeZone: next })}
        problem={form.problemOf('timeZone')}
      >
        {zonesWith(timeZone).map((zone) => (
          <option key={zone} value={zone}>
            {zone.replaceAll('_', ' ')}
          </option>
        ))}
      </SelectField>
      <p className="soft">{words.timeZoneHint}</p>
    </FormCard>
  )
}
