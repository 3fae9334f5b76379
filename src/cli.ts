import { enableCompileCache } from 'node:module'
import { parseArgs, styleText } from 'node:util'

enableCompileCache()

const usage = `Administers the service, beside a running one or without it.

  merchant create --name "Shop"         opens an account, with an API key that holds every scope
  merchant fund --id N --amount A       credits a sandbox account, whole XOF
  merchant deactivate --id N            ends an account's access within a second
  merchant cancel-payouts --id N        cancels what a deactivated account had not paid out yet, batches too
  member invite --merchant N --email E --name "X" [--role owner]
                                        invites somebody to the team of an account
  audit                                 proves the books; a broken invariant halts payments out
  audit-log verify --merchant N [--head LINE]
                                        follows the chain of an account's audit log; says whether it still
                                        contains a head from the service's log or a letter
  excess list                           lists what operators say was paid beyond what was asked
  excess credit --id N --reason "why"   gives such an excess to the merchant, once
  excess return --id N --reason "why"   says that it was given back to the payer, once
  payments-out halt --reason "why"      lets no money leave
  payments-out resume --reason "why"    lets it leave again
  backup --to FOLDER                    copies the database and the master secret, also beside the service
  restore --from FOLDER                 puts a backup in place; nothing may use the database meanwhile
  restore accept [--keep-keys]          asks operators about all since the backup; then money may leave
  restore orphans                       lists what operators know and the database does not
  restore resolve --id N --reason "..."  notes what was done about one of them
  restore declare --reason "why"        says that the database was put back, where nothing noticed it
  schema                                prints schema.graphql

  --by "name"  who decides an excess; without it the account of the operating system
  --json       one line of JSON instead of words
`

/** Runs one administration command. Exit code 0: done; 1: refused or not proven; 2: not understood. */
async function runCommand(): Promise<number> {
  const read = readArguments()
  if (typeof read === 'string') {
    process.stderr.write(`${styleText('red', read)}\n\n${usage}`)
    return 2
  }
  const { values, positionals } = read
  if (positionals.join(' ') === 'schema') return printSchema()
  const name = positionals.join(' ')
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

/** @returns what is wrong where the command line is not understood */
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

try {
  process.exitCode = await runCommand()
} catch (error) {
  process.stderr.write(`${styleText('red', error instanceof Error ? error.message : String(error))}\n`)
  process.exitCode = 1
}
