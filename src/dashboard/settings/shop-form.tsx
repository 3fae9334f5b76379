import { useState } from 'preact/hooks'
import { formatPhone } from '../format.ts'
import type { Locale, UpdateSettingsInput } from '../operations.ts'
import { Field } from '../parts/field.tsx'
import { SelectField } from '../parts/select-field.tsx'
import { FormCard, type OneForm, type Settings, useSettingsForm } from './settings-form.tsx'
import { useSettingsWords } from './words.ts'

/** Every time zone that the browser knows, the one of the settings among them. */
const zonesWith = (own: string): readonly string[] => [
  ...new Set([own, ...Intl.supportedValuesOf('timeZone')]),
]

/** The name of the shop, its languages, its address and its days. */
export function ShopForm({ settings, again }: { settings: Settings; again: () => void }) {
  const { shop: words } = useSettingsWords()
  const form = useSettingsForm(settings, again)
  const [firstPhone] = useState(settings.businessPhone)
  const [draft, setDraft] = useState(() => draftOf(settings))
  const submit = () => {
    if (draft.businessName.trim() === '') form.refuse('businessName')
    else form.save(inputOf(draft, firstPhone))
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
      <ContactFields draft={draft} onDraft={(contact) => setDraft({ ...draft, ...contact })} form={form} />
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
        {zonesWith(settings.timeZone).map((zone) => (
          <option key={zone} value={zone}>
            {zone.replaceAll('_', ' ')}
          </option>
        ))}
      </SelectField>
      <p className="soft">{words.timeZoneHint}</p>
    </FormCard>
  )
}

interface Draft extends Contact {
  businessName: string
  notificationEmail: string
  locale: Locale
  timeZone: string
}

function draftOf({
  businessName,
  locale,
  notificationEmail,
  timeZone,
  businessPhone,
  businessAddress,
}: Settings): Draft {
  return {
    businessName,
    locale,
    notificationEmail: notificationEmail ?? '',
    businessPhone: formatPhone(businessPhone ?? ''),
    businessAddress: businessAddress ?? '',
    timeZone,
  }
}

/** @param firstPhone the number that the form showed first: as the form shows it, it is no change */
function inputOf(draft: Draft, firstPhone: string | null): UpdateSettingsInput {
  const phone = draft.businessPhone.trim()
  return {
    ...draft,
    businessName: draft.businessName.trim(),
    notificationEmail: draft.notificationEmail.trim() || null,
    businessPhone: phone === formatPhone(firstPhone ?? '') ? firstPhone : phone || null,
    businessAddress: draft.businessAddress.trim() || null,
  }
}

interface Contact {
  businessPhone: string
  businessAddress: string
}

interface ContactFieldsProps {
  draft: Contact
  onDraft: (contact: Contact) => void
  form: OneForm
}

/** The telephone number and the address of the shop. */
function ContactFields({ draft: { businessPhone, businessAddress }, onDraft, form }: ContactFieldsProps) {
  const { shop: words } = useSettingsWords()
  return (
    <>
      <Field
        label={words.phone}
        hint={words.contactHint}
        inputMode="tel"
        value={businessPhone}
        onValue={(next) => onDraft({ businessPhone: next, businessAddress })}
        autoComplete="tel"
        maxLength={32}
        problem={form.problemOf('businessPhone')}
      />
      <Field
        label={words.address}
        value={businessAddress}
        onValue={(next) => onDraft({ businessPhone, businessAddress: next })}
        autoComplete="street-address"
        maxLength={200}
        problem={form.problemOf('businessAddress')}
      />
    </>
  )
}
