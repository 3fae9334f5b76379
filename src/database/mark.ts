import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

/**
 * The newest state of the database that a node has seen. It is kept in `DATA_DIR`, which a restore of the
 * database does not change.
 */
export interface Mark {
  /** The `installation.id`; marks of another installation say nothing about this one. */
  installation: string
  epoch: number
  systemIdentifier: string
  timeline: number
  databaseOid: string
  /**
   * The ids of the newest committed rows. These rows are never deleted, so a database without them was
   * restored.
   */
  lastEventId: string
  lastRequestId: string
  /**
   * The newest replacements and ends of credentials, oldest first: `credential_change.id`, and the id of the
   * API key or session.
   */
  credentialChanges: (readonly [id: string, apiKeyId: number])[]
  /** The time of writing, ISO 8601. */
  at: string
}

const fileName = 'database-mark.json'

/** @returns null where there is no mark; `'unreadable'` where the file holds no valid mark */
export function readMark(dataDir: string): Mark | null | 'unreadable' {
  try {
    const mark = JSON.parse(readFileSync(join(dataDir, fileName), 'utf8')) as Partial<Mark>
    const isMark =
      typeof mark.installation === 'string' &&
      Number.isInteger(mark.epoch) &&
      /^\d+$/.test(mark.lastEventId ?? '') &&
      /^\d+$/.test(mark.lastRequestId ?? '') &&
      Array.isArray(mark.credentialChanges)
    return isMark ? (mark as Mark) : 'unreadable'
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? null : 'unreadable'
  }
}

/**
 * Replaces the mark. The new file is flushed to the disk before it gets its name, so that a crash
 * leaves either the old mark or the new one.
 * @throws Error where the folder cannot be written
 */
export function writeMark(dataDir: string, mark: Mark): void {
  mkdirSync(dataDir, { recursive: true })
  const draft = join(dataDir, `${fileName}.${process.pid}.${drafts++}`)
  const file = openSync(draft, 'w', 0o600)
  try {
    writeSync(file, `${JSON.stringify(mark)}\n`)
    fdatasyncSync(file)
  } finally {
    closeSync(file)
  }
  try {
    renameSync(draft, join(dataDir, fileName))
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

let drafts = 0
