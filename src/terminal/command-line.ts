import { parseArgs, styleText } from 'node:util'
import { usage } from './usage.ts'

/** The streams that a command writes to, and the variables from which it reads its configuration. */
export interface CommandContext {
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  env: Readonly<Record<string, string | undefined>>
}

/**
 * Runs one administration command.
 * @returns the exit code: 0 if the command succeeded, 1 if its check failed or it was refused, 2 if the
 *   command line is wrong
 */
export async function runCommandLine(args: readonly string[], context: CommandContext): Promise<number> {
  try {
    return await runCommand(args, context)
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    context.stderr.write(`${styleText('red', words)}\n`)
    return 1
  }
}

async function runCommand(args: readonly string[], context: CommandContext): Promise<number> {
  const { stdout, stderr, env } = context
  const read = readArguments(args)
  if (typeof read === 'string') {
    stderr.write(`${styleText('red', read)}\n\n${usage}`)
    return 2
  }
  const { values, positionals } = read
  const name = positionals.join(' ')
  if (name === 'schema') return printSchema(stdout)
  if (name === 'docs') return writeReference(stdout)
  const { backUp, restore } = await import('./backup.ts')
  const alone = { backup: backUp, restore }
  if (!values.help && Object.hasOwn(alone, name)) {
    const { answer, words } = await alone[name as keyof typeof alone](values)
    stdout.write(values.json ? `${JSON.stringify(answer)}\n` : `${words}\n`)
    return 0
  }
  const { commands } = await import('./commands.ts')
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (values.help || !command) {
    stderr.write(usage)
    return values.help ? 0 : 2
  }
  const { withServices } = await import('./administration.ts')
  return withServices(async (services) => {
    const { answer, words, failed = false } = await command(services, values)
    stdout.write(values.json ? `${JSON.stringify(answer)}\n` : `${words}\n`)
    return failed ? 1 : 0
  }, env)
}

/**
 * Reads the command line.
 * @returns the words and options; a text that says what is wrong if the command line is wrong
 */
function readArguments(args: readonly string[]) {
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
    again: flag,
    without: text,
    head: text,
    json: flag,
    help: { ...flag, short: 'h' },
  } as const
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function printSchema(stdout: CommandContext['stdout']): Promise<number> {
  const [{ schema }, { printSdl }] = await Promise.all([
    import('../resources/schema.ts'),
    import('../graphql/print.ts'),
  ])
  stdout.write(printSdl(schema))
  return 0
}

async function writeReference(stdout: CommandContext['stdout']): Promise<number> {
  const { writePrinted } = await import('./reference.ts')
  stdout.write(`${writePrinted().join('\n')}\n`)
  return 0
}
