import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { dayOf } from '../format.ts'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { isSearchable, type PaymentFilter, type StatusGroup, writeFilter } from '../payment-filter.ts'
import { useSavedFilters } from '../saved-filters.ts'

/** The filters at hand: those that everybody has, and those that the person kept under a name. */
export function FilterBar({ filter }: { filter: PaymentFilter }) {
  const words = useWords()
  const { payments } = words
  const { merchantId, timeZone } = useMe()
  const { filters, save, remove } = useSavedFilters(merchantId)
  const query = writeFilter(filter)
  const nav = useRef<HTMLElement>(null)
  /** The button that had the focus goes when its work is done. */
  const keepFocus = () => nav.current?.focus({ preventScroll: true })
  const statuses = ['success', 'waiting', 'failed'] as const satisfies StatusGroup[]
  const usual = [
    { name: payments.all, query: '' },
    { name: payments.today, query: writeFilter({ from: dayOf(new Date(), timeZone) }) },
    ...statuses.map((status) => ({ name: payments.statusGroups[status], query: writeFilter({ status }) })),
  ]
  const isKnown = [...usual, ...filters].some((one) => one.query === query)
  const current = filters.find((one) => one.query === query)
  return (
    <div className="bar">
      <nav aria-label={payments.saved} ref={nav} tabIndex={-1}>
        {[...usual, ...filters].map((one) => (
          <Link
            key={`${one.name} ${one.query}`}
            href={one.query === '' ? '/payments' : `/payments?${one.query}`}
            className="chip"
            aria-current={one.query === query ? 'true' : undefined}
          >
            {one.name}
          </Link>
        ))}
      </nav>
      {current && (
        <button
          type="button"
          className="link"
          onClick={() => {
            keepFocus()
            remove(current.name)
          }}
        >
          {payments.forget(current.name)}
        </button>
      )}
      {!isKnown && isSearchable(filter.search) && (
        <SaveForm
          key={query}
          onSave={(name) => {
            keepFocus()
            save({ name, query })
          }}
        />
      )}
    </div>
  )
}

function SaveForm({ onSave }: { onSave: (name: string) => void }) {
  const { payments } = useWords()
  const [isOpen, open] = useState(false)
  const [name, setName] = useState('')
  const send = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (name.trim() !== '') onSave(name.trim())
  }
  if (!isOpen) {
    return (
      <button type="button" className="link" onClick={() => open(true)}>
        {payments.save}
      </button>
    )
  }
  return (
    <form className="search" onSubmit={send}>
      <input
        aria-label={payments.saveName}
        placeholder={payments.saveName}
        value={name}
        maxLength={40}
        ref={(input) => input?.focus()}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button type="submit" className="small">
        {payments.saveSend}
      </button>
    </form>
  )
}
