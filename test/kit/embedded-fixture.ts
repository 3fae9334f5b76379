import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded.ts'
import { session } from './session.ts'

// The fixture of the tests of the embedded PostgreSQL: folders, servers of this process, and other processes.

export const owners: ChildProcess[] = []
export const servers: EmbeddedServer[] = []
export const folders: string[] = []

export async function endAll(): Promise<void> {
  for (const owner of owners.splice(0)) await end(owner, 'SIGTERM')
  for (const server of servers.splice(0)) await server.stop()
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'embedded-'))
  folders.push(folder)
  chmodSync(folder, 0o755)
  return folder
}

export async function start(dataDir: string, options: { durable?: boolean; tcpPort?: number } = {}) {
  const events: string[] = []
  const log = (event: string) => void events.push(event)
  const server = await startEmbedded({ dataDir, durable: false, ...options, log })
  servers.push(server)
  return { server, events }
}

export const root = join(import.meta.dirname, '../..')
const ownerProgram = 'test/kit/embedded-owner.ts'

interface As {
  account?: { uid: number; gid: number }
  /** The clone that the process runs from. */
  from?: string
  path?: string
}

/** Starts another process that uses the database in `dataDir`. */
export async function startOwner(
  dataDir: string,
  { account, from = root, path = process.env['PATH'] }: As = {},
) {
  const program = [process.execPath, join(from, ownerProgram), dataDir] as const
  const [command, ...args] = account ? runAs(account, program) : program
  const owner = spawn(command, args, { env: { PATH: path }, stdio: ['ignore', 'pipe', 'pipe'] })
  owners.push(owner)
  let complaint = ''
  owner.stderr.on('data', (chunk) => (complaint += String(chunk)))
  const refused = once(owner, 'close').then(() => Promise.reject(new Error(complaint)))
  const [line] = await Promise.race([once(owner.stdout, 'data'), refused])
  const connection: pg.ClientConfig = JSON.parse(String(line))
  return { owner, connection }
}

/** Runs a program as another account, which gets access to this clone where the clone is closed to it. */
function runAs({ uid, gid }: { uid: number; gid: number }, program: readonly [string, ...string[]]) {
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] as const
  const reaches = spawnSync('sh', ['-c', 'test -r "$1"', 'sh', join(root, ownerProgram)], { uid, gid })
  if (reaches.status === 0) return [...as, ...program] as const
  const right = '+dac_read_search'
  const through = ['--inh-caps', right, '--ambient-caps', right, '--securebits=+no_setuid_fixup']
  return [...as, ...through, ...program] as const
}

export async function end(owner: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (owner.exitCode !== null || owner.signalCode !== null) return
  const exit = once(owner, 'exit')
  owner.kill(signal)
  await exit
}

export async function ask(connection: pg.ClientConfig, sql: string): Promise<unknown> {
  const { rows } = await session(connection, (client) =>
    client.query<unknown[]>({ text: sql, rowMode: 'array' }),
  )
  return rows[0]?.[0]
}
