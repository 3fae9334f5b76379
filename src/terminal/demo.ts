import { randomBytes } from 'node:crypto'
import { parseArgs, styleText } from 'node:util'
import { addressesOf, ConfigError, readConfig } from '../config.ts'
import { type Change, type Client, findService, signIn, Stop } from './demo/client.ts'
import { type Customer, customers } from './demo/customers.ts'
import { changeLine, openScreen } from './demo/screen.ts'
import { judgeBalance, judgeSequence, judgeStories, storyOf, type Verdict } from './demo/verdicts.ts'

const usage = `Shows a running sandbox at work: ten customers, four operators, every change as it comes.

  --url URL                   where the service is (http://HOST:PORT of the configuration)
  --key KEY --secret SECRET   a merchant that exists; otherwise one is made beside the service
`

/** All of it must be over by then. */
const deadlineMs = 27_000
const screen = openScreen(process.stdout)

interface Flags {
  url: string
  key: string | undefined
  secret: string | undefined
}

/** @returns exit code: 0 where everything was as it must be */
async function runDemo(flags: Flags): Promise<number> {
  await findService(flags.url)
  const merchant = flags.key === undefined ? await createMerchant() : null
  const { key = '', secret = '' } = merchant ?? flags
  const client = await signIn(flags.url, key, secret)
  const before = await client.balance()
  const run = randomBytes(4).toString('hex')
  const cast = new Map(customers.map((customer, index) => [`demo-${run}-${index + 1}`, customer]))
  const log = followLog(client, cast)
  try {
    await play(client, cast, log)
  } finally {
    screen.end()
    await client.close()
  }
  const verdicts = [
    judgeStories(log.changes, cast),
    judgeSequence(log.changes),
    judgeBalance(
      log.changes.filter(({ reference }) => cast.has(reference)),
      before,
      await client.balance(),
    ),
    ...(merchant ? [await verifyLedger()] : []),
  ]
  screen.say()
  for (const { holds, words } of verdicts) {
    screen.say(`  ${holds ? styleText('green', '✓') : styleText('red', '✗')} ${words}`)
  }
  screen.say()
  return verdicts.every(({ holds }) => holds) ? 0 : 1
}

async function play(client: Client, cast: ReadonlyMap<string, Customer>, log: Log): Promise<void> {
  const title = (bold: string, rest: string) => screen.say(`\n  ${styleText('bold', bold)} ${rest}\n`)
  const [last = ''] = [...cast.keys()].slice(-1)

  title('Ten customers', 'are asked for money, through four operators')
  await Promise.all([...cast].map(([reference, customer]) => client.collect(reference, customer)))
  await log.until(() => [...cast.keys()].every((reference) => reference === last || log.isOver(reference)))

  title('A day passes:', 'nobody has confirmed the last payment')
  await client.advanceClock('PT24H')
  await log.until(() => storyOf(last, log.changes).includes('expired'))

  title('An hour later', 'the customer pays after all, and late money is real')
  await client.advanceClock('PT1H')
  await log.until(() => log.isOver(last))
}

/** What the subscription has told so far. */
interface Log {
  changes: Change[]
  /** Whether a payment has had as many changes as its customer makes. */
  isOver(reference: string): boolean
  /** Resolves when something is true of the changes; with the deadline, whatever is missing is told later. */
  until(isSo: () => boolean): Promise<void>
}

/** Subscribes from the beginning of the merchant's log, and shows every change of this run as it comes. */
function followLog(client: Client, cast: ReadonlyMap<string, Customer>): Log {
  const changes: Change[] = []
  const all = customers.reduce((sum, customer) => sum + customer.changes.length, 0)
  const ended = AbortSignal.timeout(deadlineMs)
  let told = Promise.withResolvers<void>()
  ended.addEventListener('abort', () => told.resolve())
  const countOf = (reference: string) => changes.filter((change) => change.reference === reference).length

  async function read(): Promise<void> {
    for await (const change of client.changes()) {
      changes.push(change)
      const customer = cast.get(change.reference)
      if (customer) screen.say(changeLine(change, customer))
      screen.progress(changes.filter(({ reference }) => cast.has(reference)).length, all)
      told.resolve()
      told = Promise.withResolvers()
    }
  }
  const reading = read()
  reading.catch(() => {})
  return {
    changes,
    isOver: (reference) => countOf(reference) >= (cast.get(reference)?.changes.length ?? 0),
    async until(isSo) {
      while (!isSo() && !ended.aborted) await Promise.race([told.promise, reading])
    },
  }
}

/** Runs a command of `npm run admin` beside the service: same code, same DATA_DIR or DATABASE_URL. */
async function administer(name: string, flags: { name?: string } = {}) {
  const [{ withServices }, { commands }] = await Promise.all([
    import('./administration.ts'),
    import('./commands.ts'),
  ])
  const command = commands[name]
  if (!command) throw new Error(`There is no command ${name}.`)
  return withServices((services) => command(services, flags))
}

async function createMerchant(): Promise<{ key: string; secret: string }> {
  const { answer } = await administer('merchant create', { name: 'Demo' })
  const { api_key: key, api_secret: secret } = answer as { api_key: string; api_secret: string }
  return { key, secret }
}

async function verifyLedger(): Promise<Verdict> {
  const { words, failed = false } = await administer('audit')
  return { holds: !failed, words: failed ? words : 'The ledger holds: no invariant of the books is broken' }
}

/** @throws Misuse */
function readFlags(): Flags {
  const { values } = parseFlags()
  if (values.help) {
    process.stdout.write(usage)
    process.exit(0)
  }
  if ((values.key === undefined) !== (values.secret === undefined)) {
    throw new Misuse('--key and --secret go together.')
  }
  const config = readConfig()
  const url = values.url ?? addressesOf({ ...config, publicUrl: null }, config.port).publicUrl
  return { url: url.replace(/\/+$/, ''), key: values.key, secret: values.secret }
}

function parseFlags() {
  const text = { type: 'string' } as const
  const help = { type: 'boolean', short: 'h' } as const
  try {
    return parseArgs({ options: { url: text, key: text, secret: text, help } })
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error))
  }
}

/** The command line was not understood. */
class Misuse extends Error {}

try {
  process.exitCode = await runDemo(readFlags())
} catch (error) {
  const misused = error instanceof Misuse
  const expected = misused || error instanceof Stop || error instanceof ConfigError
  const words = error instanceof Error ? (expected ? error.message : error.stack) : String(error)
  process.stderr.write(`${styleText('red', words ?? '')}\n${misused ? `\n${usage}` : ''}`)
  process.exitCode = misused ? 2 : 1
}
