import { createHash } from 'node:crypto'
import { constants, type FileHandle, lstat, mkdir, open, readdir, readFile, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type pg from 'pg'

/**
 * The list of a backup's content. It is written last, so a folder without a manifest is an incomplete backup.
 */
export interface Manifest {
  format: 1
  /** `cluster`: the folder of the embedded PostgreSQL. `dump`: a file of pg_dump's custom format. */
  kind: 'cluster' | 'dump'
  takenAt: string
  /** The major version of the server. */
  postgres: number
  epoch: number
  /**
   * Whether the backup contains the master secret. If not, the secret is `SECRET_KEY`, which the
   * administrator keeps.
   */
  hasSecret: boolean
  files: BackupFile[]
  /** All folders, so that a restore makes the empty ones too. */
  folders: string[]
}

export interface BackupFile {
  /** The path relative to the folder of the backup, with slashes. */
  path: string
  bytes: number
  sha256: string
}

const manifestName = 'manifest.json'
export const secretName = 'secret.key'
const chunkBytes = 1_048_576

/**
 * Returns the epoch of the database. A database that no service has opened yet records its own identity now,
 * so that a copy of it is noticed; a database without the table `installation` is in epoch 1.
 */
export async function epochOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ has: boolean }>(
    `SELECT to_regclass('public.installation') IS NOT NULL AS has`,
  )
  if (!rows[0]?.has) return 1
  const opened = await client.query<{ epoch: number }>('SELECT epoch FROM open_installation()')
  return opened.rows[0]?.epoch ?? 1
}

/** Makes the folder of a backup. @throws Error where the folder is not empty */
export async function makeBackupFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  if ((await readdir(path)).length > 0)
    throw new Error(`${path} is not empty: a backup goes into a folder of its own.`)
}

/**
 * Copies a file, which may grow meanwhile, and flushes the copy to the disk if `durable`.
 * @returns the size and hash of the copy; null where the file no longer exists
 */
export async function copyHashed(
  from: string,
  to: string,
  durable = true,
): Promise<Omit<BackupFile, 'path'> | null> {
  const source = await openExisting(from)
  if (!source) return null
  try {
    const target = await open(to, 'wx', 0o600)
    try {
      return await pour(source, target, durable)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function openExisting(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

async function pour(
  source: FileHandle,
  target: FileHandle | null,
  durable: boolean,
): Promise<Omit<BackupFile, 'path'>> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let bytes = 0
  for (;;) {
    const { bytesRead } = await source.read(buffer, 0, chunkBytes)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    hash.update(chunk)
    await target?.writeFile(chunk)
    bytes += bytesRead
  }
  if (durable) await target?.sync()
  return { bytes, sha256: hash.digest('hex') }
}

/** Returns the size and hash of a file. */
export async function hashOf(path: string): Promise<Omit<BackupFile, 'path'>> {
  const file = await open(path, constants.O_RDONLY)
  try {
    return await pour(file, null, false)
  } finally {
    await file.close()
  }
}

/** Does the same work for up to 16 files at once: flushing them in parallel takes a tenth of the time. */
export async function forEachFile<T>(files: readonly T[], work: (file: T) => Promise<void>): Promise<void> {
  const rest = files.values()
  const worker = async () => {
    for (const file of rest) await work(file)
  }
  await Promise.all(Array.from({ length: filesAtOnce }, worker))
}

const filesAtOnce = 16

/** Writes the manifest, which completes a backup. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  await forEachFile(manifest.folders, (name) => syncFolder(join(folder, name)))
  const draft = join(folder, `${manifestName}.draft`)
  const file = await open(draft, 'w', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(manifest)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, join(folder, manifestName))
  await syncFolder(folder)
  await syncFolder(dirname(folder))
}

/**
 * Reads a backup's manifest and verifies that every file is unchanged.
 * @throws Error in one sentence that names the problem
 */
export async function verifyBackup(folder: string): Promise<Manifest> {
  let manifest: Manifest
  try {
    manifest = JSON.parse(await readFile(join(folder, manifestName), 'utf8')) as Manifest
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT'))
      throw new Error(`${join(folder, manifestName)} is damaged: this backup cannot be used.`, {
        cause: error,
      })
    throw new Error(`${folder} is no whole backup: it has no ${manifestName}, which is written last.`, {
      cause: error,
    })
  }
  if (manifest.format !== 1) throw new Error(`${folder} has a format that this version does not know.`)
  await forEachFile(manifest.files, async ({ path, bytes, sha256 }) => {
    const found = await hashOf(join(folder, path)).catch(() => null)
    if (!found) throw new Error(`${folder} lacks ${path}: this backup cannot be used.`)
    if (found.bytes !== bytes || found.sha256 !== sha256)
      throw new Error(`${path} in ${folder} is not as it was written: this backup cannot be used.`)
  })
  return manifest
}

/** Flushes to the disk a file that another program wrote. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Flushes a folder, so that the names of new and renamed files survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder as a file, and writes names to the disk by itself.
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

export async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
