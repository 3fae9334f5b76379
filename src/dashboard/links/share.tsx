import { useState } from 'preact/hooks'
import { formatXof } from '../format.ts'
import { useLanguage } from '../language.ts'
import { useMe } from '../me.ts'
import type { LinkFactsFragment } from '../operations.ts'
import { folder } from '../page-facts.ts'
import { useLinkWords } from './words.ts'

/** The ways to hand a link on: its address, a message, and its QR code for a screen and for paper. */
export function Share({ link }: { link: LinkFactsFragment }) {
  const words = useLinkWords()
  const language = useLanguage()
  const [isCopied, setCopied] = useState<boolean>()
  const { title, amount, url, databaseId } = link
  const written = amount === null ? '' : formatXof(amount, language)
  const text = words.message(title, written, url)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(url)
      setCopied(true)
    } catch {
      // A page without a secure address may not write to the clipboard: the address can be marked by hand.
      setCopied(false)
    }
  }
  return (
    <section className="card share">
      <h2>{words.address}</h2>
      <p>
        <a href={url} target="_blank" rel="noreferrer">
          {url}
        </a>
      </p>
      <p className="bar">
        <a
          className="action"
          href={`https://wa.me/?text=${encodeURIComponent(text)}`}
          target="_blank"
          rel="noreferrer"
        >
          {words.whatsApp}
        </a>
        <button type="button" className="quiet small" onClick={() => void copy()}>
          {words.copy}
        </button>
        {'share' in navigator && (
          <button
            type="button"
            className="quiet small"
            onClick={() => void navigator.share({ title, text, url }).catch(() => {})}
          >
            {words.share}
          </button>
        )}
      </p>
      <p role="status">{isCopied === undefined ? '' : isCopied ? words.copied : words.notCopied}</p>
      <Poster link={link} written={written} />
      <p className="soft">{words.qrHint}</p>
      <p className="bar">
        <button type="button" className="quiet small" onClick={() => print()}>
          {words.print}
        </button>
        <a href={codeAddress(databaseId, 'png')} download>
          {words.download}
        </a>
      </p>
    </section>
  )
}

function codeAddress(id: number, kind: 'svg' | 'png'): string {
  return new URL(`../merchant/api/payment-links/${id}/qr.${kind}`, folder).href
}

/** The part of the page that a shop prints. */
function Poster({ link, written }: { link: LinkFactsFragment; written: string }) {
  const words = useLinkWords()
  const { merchantName } = useMe()
  const { title, url, databaseId } = link
  return (
    <div className="poster">
      <p className="poster-words small">{merchantName}</p>
      <p className="poster-words">{words.payWith}</p>
      <p className="poster-words">
        <bdi>{title}</bdi>
      </p>
      {written !== '' && <p className="poster-words">{written}</p>}
      <img className="qr" src={codeAddress(databaseId, 'svg')} alt={words.qr} width="240" height="240" />
      <p className="poster-words small">{url}</p>
    </div>
  )
}
