/** A command of `npm run admin` as a person types it, with a description. */
interface AdminCommand {
  call: string
  does: string
}

/** All commands of `npm run admin`, in the order of its help and of `docs/reference/commands.md`. */
export const adminCommands: readonly AdminCommand[] = [
  { call: 'merchant create --name "Shop"', does: 'Opens an account; shows its API key and secret, once.' },
  { call: 'merchant fund --id N --amount A', does: 'Credits a sandbox account, in whole francs.' },
  { call: 'merchant deactivate --id N', does: 'Ends the access of an account within a second.' },
  {
    call: 'merchant cancel-payouts --id N',
    does: 'Cancels the payouts and batches of a deactivated account that were not sent.',
  },
  {
    call: 'member invite --merchant N --email E --name "X" [--role owner]',
    does: 'Invites a person to the team of an account.',
  },
  { call: 'audit', does: 'Proves the books, rule by rule. A broken rule halts payments out.' },
  { call: 'ledger verify', does: 'The same as audit.' },
  {
    call: 'audit-log verify --merchant N [--head LINE]',
    does: 'Checks the chain of an audit log, and that it still contains a line of the log.',
  },
  { call: 'excess list', does: 'Lists what operators say was paid beyond what was asked for.' },
  { call: 'excess credit --id N --reason "why"', does: 'Gives such an excess to the merchant, once.' },
  { call: 'excess return --id N --reason "why"', does: 'Says that it was given back to the payer, once.' },
  { call: 'payments-out halt --reason "why"', does: 'Lets no money leave.' },
  { call: 'payments-out resume --reason "why"', does: 'Lets money leave again.' },
  { call: 'backup --to FOLDER', does: 'Copies the database and the master secret, also beside the service.' },
  { call: 'restore --from FOLDER', does: 'Puts a backup in place. Nothing else may use the database.' },
  {
    call: 'restore accept [--keep-keys]',
    does: 'Asks the operators about everything since the backup; then money may leave.',
  },
  { call: 'restore orphans', does: 'Lists payments that operators know and the database does not.' },
  { call: 'restore resolve --id N --reason "why"', does: 'Records what was done about one of them.' },
  {
    call: 'restore declare --reason "why"',
    does: 'Says that the database was put back, where nothing noticed it.',
  },
  { call: 'schema', does: 'Prints schema.graphql.' },
  { call: 'docs', does: 'Writes the pages of src/docs/reference from the tables in the code.' },
]

/** Flags that belong to many commands. */
export const adminFlags: readonly AdminCommand[] = [
  { call: '--by "name"', does: 'Who decides an excess; without it the account of the operating system.' },
  { call: '--json', does: 'One line of JSON instead of sentences.' },
]

const columns = 40

function line({ call, does }: AdminCommand): string {
  return call.length > columns
    ? `  ${call}\n  ${' '.repeat(columns)}${does}`
    : `  ${call.padEnd(columns)}${does}`
}

/** The text that `npm run admin -- --help` prints. */
export const usage = `Administers the service, beside a running one or without it.

${adminCommands.map(line).join('\n')}

${adminFlags.map(line).join('\n')}
`
