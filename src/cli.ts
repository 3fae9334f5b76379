import { enableCompileCache } from 'node:module'
import { parseArgs, styleText } from 'node:util'
import { usage } from './terminal/usage.ts'

enableCompileCache()

/**
 * Runs one administration command.
 * @returns the exit code: 0 if the command succeeded, 1 if its check failed, 2 if the command line is wrong
 * @throws Error if the command is refused; the exit code is then 1
 */
async function runCommand(): Promise<number> {
  const read = readArguments()
  if (typeof read === 'string') {
    process.stderr.write(`${styleText('red', read)}\n\n${usage}`)
    return 2
  }
  const { values, positionals } = read
  const name = positionals.join(' ')
  if (name === 'schema') return printSchema()
  if (name === 'docs') return writeReference()
  const { backUp, restore } = await import('./terminal/backup.ts')
  const alone = { backup: backUp, restore }
  if (!values.help && Object.hasOwn(alone, name)) {
    const { answer, words } = await alone[name as keyof typeof alone](values)
    process.stdout.write(values.json ? `${JSON.stringify(answer)}\n` : `${words}\n`)
    return 0
  }
  const { commands } = await import('./terminal/commands.ts')
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (values.help || !command) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  const { withServices } = await import('./terminal/administration.ts')
  return withServices(async (services) => {
    const { answer, words, failed = false } = await command(services, values)
    process.stdout.write(values.json ? `${JSON.stringify(answer)}\n` : `${words}\n`)
    return failed ? 1 : 0
  })
}

/**
 * Reads the command line.
 * @returns the words and options; a text that says what is wrong if the command line is wrong
 */
function readArguments() {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const options = {
    name: text,
    id: text,
    amount: text,
    merchant: text,
    email: text,
    role: text,
    reason: text,
    by: text,
    to: text,
    from: text,
    'keep-keys': flag,
    head: text,
    json: flag,
    help: { ...flag, short: 'h' },
  } as const
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function printSchema(): Promise<number> {
  const [{ schema }, { printSdl }] = await Promise.all([
    import('./resources/schema.ts'),
    import('./graphql/print.ts'),
  ])
  process.stdout.write(printSdl(schema))
  return 0
}

async function writeReference(): Promise<number> {
  const { writePages } = await import('./terminal/reference.ts')
  process.stdout.write(`${writePages().join('\n')}\n`)
  return 0
}

try {
  process.exitCode = await runCommand()
} catch (error) {
  process.stderr.write(`${styleText('red', error instanceof Error ? error.message : String(error))}\n`)
  process.exitCode = 1
}
