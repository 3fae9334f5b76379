import { readFileSync } from 'node:fs'
import { ConfigError } from './parse.ts'

/** Settings that may be given as the path of a file, in addition to all `OPERATOR_A_...` settings. */
export const fileSettings = ['SECRET_KEY', 'DATABASE_URL', 'SMTP_URL'] as const

const fileNames = new RegExp(`^(${fileSettings.join('|')}|OPERATOR_[A-D]_[A-Z_]+)_FILE$`)

/**
 * Returns all settings, and reads those that are given as a file (`X_FILE`). An empty setting is absent.
 * @throws ConfigError that names the setting whose file cannot be read
 */
export function withFiles(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const values: Record<string, string | undefined> = { ...environment }
  for (const [name, path] of Object.entries(environment)) {
    if (!path || !fileNames.test(name)) continue
    try {
      values[name.slice(0, -'_FILE'.length)] = readFileSync(path, 'utf8').trim()
    } catch (error) {
      throw new ConfigError(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  for (const [name, value] of Object.entries(values)) if (value === '') delete values[name]
  return values
}
