import { enableCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import type { Simulator, SimulatorOptions } from './simulator.ts'

// The compile cache halves the processor time of a start, from the second one on: the import below uses it.
enableCompileCache()
const { startSimulator } = await import('./simulator.ts')

const help = `The operator simulator: four mobile-money operators that move no real money.

  --port N            port to listen on (OPERATORS_PORT or 4010; 0: any)
  --any-port          take another port if that one is taken
  --host ADDRESS      address to listen on (127.0.0.1)
  --journal PATH      keep all operations in this file
  --control-token T   opens /_sim/* (OPERATORS_CONTROL_TOKEN or sandbox-control)
  --seed N            repeatable identifiers
  --public-url URL    the address that people use, if it is another one
  --json              one line of JSON when ready
  --tied              begin at the first line of standard input, end when it closes; implies --json`

await run()

async function run(): Promise<void> {
  const flags = readFlags()
  if (!flags || (flags.tied && !(await waitForOwner()))) return
  const simulator = await start(flags.options, flags.anyPort)
  const stop = () => {
    // Running requests need no orderly end: the journal holds every change.
    void simulator.close().finally(() => process.exit(0))
  }
  // A signal may reach the whole process group. A tied simulator ignores it and ends with its owner, because
  // the owner may need it to finish its work.
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, flags.tied ? () => {} : stop)
  // The process that started this one may have ended: then nothing reads the output, which is no error.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  if (flags.tied) {
    process.stdin.on('end', stop).on('error', stop).on('close', stop)
    process.stdin.resume()
  }
  const json = JSON.stringify({ simulator: 'ready', url: simulator.url })
  process.stdout.write(
    flags.json ? `${json}\n` : screen(simulator.url, flags.options.publicUrl ?? simulator.url),
  )
}

/**
 * Waits for the first line of standard input. The owner sends it once the journal belongs to the owner; until
 * then another process may use the journal.
 * @returns false if the owner has ended
 */
function waitForOwner(): Promise<boolean> {
  return new Promise((resolve) => {
    process.stdin
      .once('data', () => {
        process.stdin.pause()
        resolve(true)
      })
      .once('end', () => resolve(false))
      .once('error', () => resolve(false))
  })
}

interface Flags {
  options: SimulatorOptions
  anyPort: boolean
  tied: boolean
  json: boolean
}

function readFlags(): Flags | null {
  try {
    const { values } = parseArgs({
      options: {
        // The service's own settings are used, so that both sides agree by default.
        port: { type: 'string', default: process.env['OPERATORS_PORT'] ?? '4010' },
        'any-port': { type: 'boolean', default: false },
        host: { type: 'string', default: '127.0.0.1' },
        journal: { type: 'string' },
        'control-token': {
          type: 'string',
          default: process.env['OPERATORS_CONTROL_TOKEN'] ?? 'sandbox-control',
        },
        seed: { type: 'string' },
        'public-url': { type: 'string' },
        tied: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) {
      process.stdout.write(`${help}\n`)
      return null
    }
    const options: SimulatorOptions = {
      port: whole('port', values.port, 65_535),
      host: values.host,
      log: writeLog,
    }
    if (values.journal) options.journalPath = values.journal
    if (values['control-token']) options.controlToken = values['control-token']
    if (values.seed) options.seed = whole('seed', values.seed, Number.MAX_SAFE_INTEGER)
    if (values['public-url']) options.publicUrl = values['public-url']
    return { options, anyPort: values['any-port'], tied: values.tied, json: values.json || values.tied }
  } catch (error) {
    return refuseToStart(error, `\n${help}`)
  }
}

async function start(options: SimulatorOptions, anyPort: boolean): Promise<Simulator> {
  try {
    return await startSimulator(options)
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    if (taken && anyPort) return startSimulator({ ...options, port: 0 })
    if (!taken) return refuseToStart(error)
    return refuseToStart(
      new Error(`Port ${options.port} is taken. Choose another with --port, or add --any-port.`),
    )
  }
}

function refuseToStart(error: unknown, more = ''): never {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}${more}\n`)
  process.exit(1)
}

function whole(name: string, value: string, most: number): number {
  if (!/^\d+$/.test(value) || Number(value) > most)
    throw new Error(`--${name}: a whole number up to ${most}.`)
  return Number(value)
}

function writeLog(line: object): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), ...line })}\n`)
}

function screen(url: string, publicUrl: string): string {
  return `
  The operators are open. No real money moves here.

  Telephone       ${publicUrl}/phone      answer payment requests; the PIN is 0000
  Dashboard       ${publicUrl}/           floats, latest operations, test numbers
  For the API     ${url}/op-a  …  ${url}/op-d

  Numbers         any number pays after 3 seconds
                  +223 70 09 00 01   you decide, on the telephone page
                  +223 70 01 05 01   declines after 5 seconds
                  +223 70 02 00 01   has no money

  Ctrl+C stops it.

`
}
