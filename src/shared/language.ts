/** The languages of pages, letters, templates and messages. */
const languages = ['fr', 'en'] as const
export type Language = (typeof languages)[number]

/**
 * Returns the supported language that a client prefers most; `otherwise` where it names none.
 * @param requested the header `Accept-Language`: `bm,fr;q=0.9,en;q=0.5` asks for French
 */
export function preferredLanguage<T>(requested: string, otherwise: T): Language | T {
  const ours = requested.split(',').flatMap((item) => {
    const [range = '', weight = '1'] = item.split(/\s*;\s*q=/i)
    const language = languages.find((each) => new RegExp(`^\\s*${each}\\b`, 'i').test(range))
    return language && Number(weight) > 0 ? [{ language, weight: Number(weight) }] : []
  })
  const [best] = ours.toSorted((a, b) => b.weight - a.weight)
  return best?.language ?? otherwise
}
