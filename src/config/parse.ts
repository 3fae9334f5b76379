import { z } from 'zod'

/** The error of one or more wrong settings; `message` names every one of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** The schema of a setting that is on or off. */
export const flag = z
  .enum(['true', 'false', '1', '0'])
  .transform((value) => value === 'true' || value === '1')

/**
 * Reads settings by their schema.
 * @param prefix the prefix of the setting names in an error
 * @throws ConfigError that names every setting that does not fit the schema
 */
export function parse<T extends z.ZodType>(
  schema: T,
  values: Record<string, string | undefined>,
  prefix: string,
): z.infer<T> {
  const result = schema.safeParse(values)
  if (result.success) return result.data
  throw new ConfigError(
    result.error.issues.map((issue) => `${prefix}${issue.path.join('.')}: ${issue.message}`).join('\n'),
  )
}
