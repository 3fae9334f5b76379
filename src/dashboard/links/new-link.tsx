import { Link, useLocation } from 'wouter-preact'
import { useMe } from '../me.ts'
import { LinkForm } from './link-form.tsx'
import { useSaveLink } from './use-save-link.ts'
import { useLinkWords } from './words.ts'

const empty = { title: '', amount: '', description: '', usageLimit: '', expiresOn: '' }

/** A new payment link. */
export function NewLinkScreen() {
  const words = useLinkWords()
  const { mayMakeLinks } = useMe()
  const [, goTo] = useLocation()
  const { isSending, refused, save } = useSaveLink(null, (id) => goTo(`/links/${id}`))
  return (
    <>
      <p>
        <Link href="/links">‹ {words.back}</Link>
      </p>
      <h1>{words.start}</h1>
      <section className="card request">
        {mayMakeLinks ? (
          <LinkForm
            start={empty}
            send={words.form.create}
            isSending={isSending}
            refused={refused}
            onSend={(input) => void save(input)}
          />
        ) : (
          <p>{words.mayNot}</p>
        )}
      </section>
    </>
  )
}
