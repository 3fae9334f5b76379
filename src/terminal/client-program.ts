import { parseArgs, styleText } from 'node:util'
import { addressesOf, readConfig } from '../config/config.ts'
import { ConfigError } from '../config/parse.ts'

// The common parts of programs that use a running service: flags, credentials of a merchant, and exit codes.

/** An error with a message that tells the person at the terminal what is wrong and what to do. */
export class Stop extends Error {}

/** The error of a command line that was not understood. */
export class Misuse extends Error {}

/** The credentials of a merchant as text. */
export interface Credentials {
  key: string
  secret: string
}

/** The flags of the command line. */
export interface Flags<Name extends string> {
  /** The address of the service, without a slash at its end. */
  url: string
  /** Null if the command line names no merchant. */
  credentials: Credentials | null
  more: Partial<Record<Name, string>>
}

/**
 * Runs a program and sets its exit code: the number that `work` returns, 2 if the command line is wrong, 1
 * after any other error. Prints the message of an expected error (with the usage if the command line is
 * wrong), and the stack of any other.
 * @param names the flags besides `--url`, `--key` and `--secret`, each with a value
 */
export async function runClientProgram<Name extends string>(
  usage: string,
  names: readonly Name[],
  work: (flags: Flags<Name>) => Promise<number>,
): Promise<void> {
  try {
    process.exitCode = await work(readFlags(usage, names))
  } catch (error) {
    const misused = error instanceof Misuse
    const expected = misused || error instanceof Stop || error instanceof ConfigError
    const words = error instanceof Error ? (expected ? error.message : error.stack) : String(error)
    process.stderr.write(`${styleText('red', words ?? '')}\n${misused ? `\n${usage}` : ''}`)
    process.exitCode = misused ? 2 : 1
  }
}

/** Reads the flags, or prints the usage and ends the process for `--help`. @throws Misuse */
function readFlags<Name extends string>(usage: string, names: readonly Name[]): Flags<Name> {
  const { help, url, key, secret, ...more } = parseFlags(names)
  if (help) {
    process.stdout.write(usage)
    process.exit(0)
  }
  if ((key === undefined) !== (secret === undefined)) throw new Misuse('--key and --secret go together.')
  const config = readConfig()
  const own = addressesOf({ ...config, publicUrl: null }, config.port).publicUrl
  return {
    url: (url ?? own).replace(/\/+$/, ''),
    credentials: key === undefined || secret === undefined ? null : { key, secret },
    more: more as Flags<Name>['more'],
  }
}

function parseFlags(names: readonly string[]): Record<string, string | undefined> {
  const text = { type: 'string' } as const
  const options = Object.fromEntries(['url', 'key', 'secret', ...names].map((name) => [name, text]))
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } } })
    return values as Record<string, string | undefined>
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error))
  }
}

/** Runs a command of `npm run admin` beside the service, with the same DATA_DIR or DATABASE_URL. */
export async function administer(name: string, flags: { name?: string } = {}) {
  const [{ withServices }, { commands }] = await Promise.all([
    import('./administration.ts'),
    import('./commands.ts'),
  ])
  const command = commands[name]
  if (!command) throw new Error(`There is no command ${name}.`)
  return withServices((services) => command(services, flags))
}

/** Creates a merchant by the command `merchant create`, beside the service. */
export async function makeMerchant(name: string): Promise<Credentials> {
  const { answer } = await administer('merchant create', { name })
  const { api_key: key, api_secret: secret } = answer as { api_key: string; api_secret: string }
  return { key, secret }
}

/**
 * Checks that a sandbox answers at an address.
 * @throws Stop if nothing answers, or if it is no sandbox
 */
export async function findSandbox(url: string, why: string): Promise<void> {
  const answer = await fetch(`${url}/merchant/api/status`, { signal: AbortSignal.timeout(3_000) }).catch(
    () => null,
  )
  if (!answer) throw new Stop(`Nothing answers at ${url}: run "npm start" first, in another terminal.`)
  const { data } = (await answer.json().catch(() => ({}))) as { data?: { environment?: string } }
  if (data?.environment !== 'sandbox') throw new Stop(`There is no sandbox at ${url}: ${why}.`)
}

/**
 * Signs in over REST.
 * @param scopes the scopes of the token; if absent, the service's default
 * @returns the header `Authorization`
 * @throws Stop if the service rejects the credentials
 */
export async function authorize(
  url: string,
  { key, secret }: Credentials,
  scopes?: readonly string[],
): Promise<string> {
  const answer = await fetch(`${url}/merchant/api/auth`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'X-API-Secret': secret, 'Content-Type': 'application/json' },
    body: JSON.stringify({ scopes }),
    signal: AbortSignal.timeout(15_000),
  })
  const { data, message } = (await answer.json()) as { data?: { token: string }; message?: string }
  if (data) return `Bearer ${data.token}`
  throw new Stop(
    `The service at ${url} does not accept the key: ${message} Set its DATA_DIR or DATABASE_URL, ` +
      'or give a --key and --secret that it knows.',
  )
}
