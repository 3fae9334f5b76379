/** The languages of pages, letters, templates and messages. */
export type Language = 'fr' | 'en'

/**
 * Returns the supported language that a client prefers most; `otherwise` where it names none.
 * @param requested the header `Accept-Language`: `bm,fr;q=0.9,en;q=0.5` asks for French
 */
export function preferredLanguage<T>(requested: string, otherwise: T): Language | T {
  const ranges = requested.split(',').map((item) => {
    const [range = '', weight = '1'] = item.split(/\s*;\s*q=/i)
    return { language: /^(?:fr|en)\b/.exec(range.trim().toLowerCase())?.[0], weight: Number(weight) }
  })
  const ours = ranges.filter(({ language, weight }) => language !== undefined && weight > 0)
  const [best] = ours.toSorted((a, b) => b.weight - a.weight)
  return best ? (best.language as Language) : otherwise
}
