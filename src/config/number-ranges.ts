import { z } from 'zod'
import { type Provider, providers } from '../shared/providers.ts'

/** Beginnings of national numbers, and the operator whose customers mostly have them. */
export type NumberRanges = readonly { prefix: string; provider: Provider }[]

const entry = z
  .string()
  .regex(/^\d{1,8}=\w+$/, 'must be a list like 7=OperatorA,6=OperatorC')
  .transform((pair) => pair.split('='))
  .pipe(z.tuple([z.string(), z.enum(providers, `must name ${providers.join(', ')}`)]))
  .transform(([prefix, provider]) => ({ prefix, provider }))

/** The setting of it; where it says nothing, as numbers were given out in Mali. */
export const rangeSettings = {
  NUMBER_RANGES: z
    .string()
    .default('7=OperatorA,8=OperatorA,6=OperatorC,9=OperatorC,5=OperatorD')
    .transform((list) => list.split(',').map((pair) => pair.trim()))
    .pipe(z.array(entry))
    .refine(
      (ranges) => new Set(ranges.map(({ prefix }) => prefix)).size === ranges.length,
      'must name each beginning once',
    )
    .describe(
      'The operator that the beginning of a number suggests for a recipient of a batch, if ' +
        'nothing else says it. The longest beginning that fits counts.',
    ),
}

/**
 * The operator that a number suggests: that of its longest beginning in the table. Numbers are portable, so
 * that it is no more than a suggestion.
 * @param phone E.164
 */
export function suggestProvider(ranges: NumberRanges, phone: string): Provider | null {
  const national = phone.replace('+223', '')
  const fitting = ranges.filter(({ prefix }) => national.startsWith(prefix))
  return fitting.toSorted((a, b) => b.prefix.length - a.prefix.length)[0]?.provider ?? null
}
