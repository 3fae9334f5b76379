import { html } from 'hono/html'
import { parsePhone } from '../../shared/phone.ts'
import type { HtmlPart, PageLanguage } from './layout.ts'

/** A merchant as payers know it. */
interface ShownMerchant {
  merchantName: string
  /** E.164 */
  merchantPhone: string | null
  merchantAddress: string | null
}

const words = {
  fr: { call: (number: string) => `Appeler le ${number}`, write: 'Écrire sur WhatsApp' },
  en: { call: (number: string) => `Call ${number}`, write: 'Write on WhatsApp' },
} as const

/** Makes the head and the foot of a page of a merchant: its name, and how a payer reaches it. */
export function ofMerchant(
  language: PageLanguage,
  merchant: ShownMerchant,
): { from: string; foot: HtmlPart } {
  return { from: merchant.merchantName, foot: contactOf(language, merchant) }
}

function contactOf(
  language: PageLanguage,
  { merchantName, merchantPhone, merchantAddress }: ShownMerchant,
): HtmlPart {
  if (merchantPhone === null && merchantAddress === null) return ''
  const say = words[language]
  const address = merchantAddress === null ? '' : html`<br>${merchantAddress}`
  return html`<footer><p><b>${merchantName}</b>${address}</p>
${merchantPhone === null ? '' : html`<p>${call(merchantPhone)}</p>`}</footer>`

  function call(phone: string): HtmlPart {
    const link = html`<a href="tel:${phone}">${say.call(spaced(phone))}</a>`
    return mayHaveWhatsApp(phone)
      ? html`${link} · <a href="https://wa.me/${phone.slice(1)}" rel="noreferrer">${say.write}</a>`
      : link
  }
}

/** Writes a number of Mali in pairs, as people read it out. */
function spaced(phone: string): string {
  return phone.replace(/^\+223(\d\d)(\d\d)(\d\d)(\d\d)$/, '+223\u{a0}$1\u{a0}$2\u{a0}$3\u{a0}$4')
}

/** Whether a number may have WhatsApp: a fixed number of Mali has none. */
function mayHaveWhatsApp(phone: string): boolean {
  return !phone.startsWith('+223') || parsePhone(phone) !== null
}
