/** An amount in whole West African CFA francs. XOF has no minor unit: 5000n means 5,000 francs. */
export type Xof = bigint

/** The only currency (see docs/design/rules.md#general). */
export const currency = 'XOF' as const

const formats = {
  fr: new Intl.NumberFormat('fr', { style: 'currency', currency }),
  en: new Intl.NumberFormat('en', { style: 'currency', currency, currencyDisplay: 'code' }),
}

/** Formats an amount for people: `5 000 F CFA` in French, `XOF 5,000` in English. */
export function formatXof(amount: Xof | number, locale: 'fr' | 'en' = 'fr'): string {
  return formats[locale].format(amount)
}

/** Writes a whole number in groups of three digits, as readers of English do: `10,000`. */
export function grouped(value: number): string {
  return value.toLocaleString('en')
}
