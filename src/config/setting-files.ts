import { readFileSync } from 'node:fs'

/** The settings, those that were given as the path of a file (`X_FILE`) too; an empty one is none. */
export function withFiles(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const values: Record<string, string | undefined> = { ...environment }
  for (const [name, path] of Object.entries(environment)) {
    if (
      !name.endsWith('_FILE') ||
      !path ||
      !/^(SECRET_KEY|DATABASE_URL|SMTP_URL|OPERATOR_[A-D]_[A-Z_]+)_FILE$/.test(name)
    )
      continue
    values[name.slice(0, -'_FILE'.length)] = readFileSync(path, 'utf8').trim()
  }
  for (const [name, value] of Object.entries(values)) if (value === '') delete values[name]
  return values
}
