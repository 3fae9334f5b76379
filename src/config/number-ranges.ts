import { z } from 'zod'
import { type Provider, providers } from '../shared/providers.ts'

/** First digits of national numbers, each with the operator that most customers with such a number have. */
export type NumberRanges = readonly { prefix: string; provider: Provider }[]

const entry = z
  .string()
  .regex(/^\d{1,8}=\w+$/, 'must be a list like 7=OperatorA,6=OperatorC')
  .transform((pair) => pair.split('='))
  .pipe(z.tuple([z.string(), z.enum(providers, `must name ${providers.join(', ')}`)]))
  .transform(([prefix, provider]) => ({ prefix, provider }))

/** The setting of the ranges. The default follows the number ranges that were given to operators in Mali. */
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
 * Returns the operator that a number suggests: the longest prefix in the table that fits decides. Numbers are
 * portable, so this is only a suggestion.
 * @param phone E.164
 */
export function suggestProvider(ranges: NumberRanges, phone: string): Provider | null {
  const national = phone.replace('+223', '')
  const fitting = ranges.filter(({ prefix }) => national.startsWith(prefix))
  return fitting.toSorted((a, b) => b.prefix.length - a.prefix.length)[0]?.provider ?? null
}
