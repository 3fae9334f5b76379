import { randomBytes } from 'node:crypto'
import { styleText } from 'node:util'
import { administer, type Flags, findSandbox, makeMerchant, runClientProgram } from './client-program.ts'
import { type DemoChange, type Client, signIn } from './demo/client.ts'
import { type Customer, customers } from './demo/customers.ts'
import { changeLine, openScreen } from './demo/screen.ts'
import { checkBalance, checkSequence, checkStories, storyOf, type DemoVerdict } from './demo/verdicts.ts'

const usage = `Shows a running sandbox at work: ten customers, four operators, every change as it comes.

  --url URL                   the address of the service (http://HOST:PORT of the configuration)
  --key KEY --secret SECRET   an existing merchant; without it, a new merchant
`

/** The longest time for which the demonstration waits for changes. */
const deadlineMs = 27_000
const screen = openScreen(process.stdout)

/** Runs the demonstration. @returns exit code: 0 if all verdicts are right */
async function runDemo({ url, credentials }: Flags<never>): Promise<number> {
  await findSandbox(url, 'the demo moves its clock')
  const client = await signIn(url, credentials ?? (await makeMerchant('Demo')))
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
    checkStories(log.changes, cast),
    checkSequence(log.changes, credentials === null),
    checkBalance(
      log.changes.filter(({ reference }) => cast.has(reference)),
      before,
      await client.balance(),
    ),
    ...(credentials ? [] : [await verifyLedger()]),
  ]
  screen.say()
  for (const { isRight, words } of verdicts) {
    screen.say(`  ${isRight ? styleText('green', '✓') : styleText('red', '✗')} ${words}`)
  }
  screen.say()
  return verdicts.every(({ isRight }) => isRight) ? 0 : 1
}

async function play(client: Client, cast: ReadonlyMap<string, Customer>, log: Log): Promise<void> {
  const title = (bold: string, rest: string) => screen.say(`\n  ${styleText('bold', bold)} ${rest}\n`)
  const [last = ''] = [...cast.keys()].slice(-1)

  title('Ten customers', 'are asked for money, through four operators')
  await Promise.all([...cast].map(([reference, customer]) => client.collect(reference, customer)))
  await log.until(() => [...cast.keys()].every((reference) => reference === last || log.isOver(reference)))

  title('A day passes:', 'the last payment is still not confirmed')
  await client.advanceClock('PT24H')
  await log.until(() => storyOf(last, log.changes).includes('expired'))

  title('An hour later', 'the customer pays after all: the late payment is credited')
  await client.advanceClock('PT1H')
  await log.until(() => log.isOver(last))
}

/** The changes that the subscription has sent so far. */
interface Log {
  changes: DemoChange[]
  /** Whether a payment has had as many changes as are expected of its customer. */
  isOver(reference: string): boolean
  /** Resolves when the condition is true, or at the deadline; then the verdicts report missing changes. */
  until(isSo: () => boolean): Promise<void>
}

/** Subscribes from the beginning of the merchant's log, and shows each change of this run as it comes. */
function followLog(client: Client, cast: ReadonlyMap<string, Customer>): Log {
  const changes: DemoChange[] = []
  const all = customers.reduce((sum, customer) => sum + customer.changes.length, 0)
  const ended = AbortSignal.timeout(deadlineMs)
  let changed = Promise.withResolvers<void>()
  ended.addEventListener('abort', () => changed.resolve())
  const countOf = (reference: string) => changes.filter((change) => change.reference === reference).length

  async function read(): Promise<void> {
    for await (const change of client.changes()) {
      changes.push(change)
      const customer = cast.get(change.reference)
      if (customer) screen.say(changeLine(change, customer))
      screen.progress(changes.filter(({ reference }) => cast.has(reference)).length, all)
      changed.resolve()
      changed = Promise.withResolvers()
    }
  }
  const reading = read()
  reading.catch(() => {})
  return {
    changes,
    isOver: (reference) => countOf(reference) >= (cast.get(reference)?.changes.length ?? 0),
    async until(isSo) {
      while (!isSo() && !ended.aborted) await Promise.race([changed.promise, reading])
    },
  }
}

async function verifyLedger(): Promise<DemoVerdict> {
  const { words, failed = false } = await administer('audit')
  return { isRight: !failed, words: failed ? words : 'The ledger holds: no invariant of the books is broken' }
}

await runClientProgram(usage, [], runDemo)
