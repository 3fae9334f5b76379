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
  { call: 'merchant activate --id N', does: 'Gives a deactivated account its access back.' },
  {
    call: 'merchant cancel-payouts --id N',
    does: 'Cancels the payouts and batches of a deactivated account that were not sent.',
  },
  {
    call: 'member invite --merchant N --email E --name "X" [--role owner]',
    does: 'Invites a person to the team of an account; shows the link to join, once.',
  },
  {
    call: 'owner invite --merchant N --email E --name "X"',
    does: 'Invites an owner; shows the link to join, once. A person who has not joined gets a new link.',
  },
  { call: 'audit', does: 'Proves the books, rule by rule. A broken rule halts payments out.' },
  { call: 'ledger verify', does: 'The same as audit.' },
  {
    call: 'audit-log verify --merchant N [--head LINE]',
    does: 'Checks the chain of an audit log; with --head also that it still contains this head.',
  },
  {
    call: 'difference list',
    does: 'Lists payments for which an operator confirms another amount than was asked.',
  },
  {
    call: 'difference credit --id N --reason "why"',
    does: 'Credits a difference to the merchant, once two people decide so.',
  },
  {
    call: 'difference return --id N --reason "why"',
    does: 'Records that an excess was returned to the payer, once two people decide so.',
  },
  {
    call: 'difference paid --id N --reason "why"',
    does: 'Records that the operator did pay the rest of a payment out, once two people decide so.',
  },
  { call: 'payments-out halt --reason "why"', does: 'Halts payments out: no money leaves.' },
  { call: 'payments-out resume --reason "why"', does: 'Resumes payments out.' },
  {
    call: 'backup --to FOLDER',
    does: 'Copies the database and the master secret (not SECRET_KEY), while the service runs or not.',
  },
  {
    call: 'restore --from FOLDER',
    does: 'Replaces the database by a backup. The service must be stopped.',
  },
  {
    call: 'restore accept [--keep-keys] [--without OperatorB,OperatorC --reason "why"]',
    does:
      'Reads all transfers since the backup; then money may leave. The service must run. Operators after ' +
      '--without need not answer or prove who they are.',
  },
  {
    call: 'restore orphans [--again]',
    does:
      'Lists orphans: payments that operators know and the database does not. --again reads all transfers ' +
      'since the backup again first.',
  },
  { call: 'restore resolve --id N --reason "why"', does: 'Records how an orphan was resolved.' },
  {
    call: 'restore declare --reason "why"',
    does: 'Says that the database was restored, if the service did not detect it.',
  },
  { call: 'schema', does: 'Prints schema.graphql.' },
  {
    call: 'docs',
    does: 'Writes the pages of src/docs/reference, and the operations of src/dashboard, from the code.',
  },
]

/** The flags that the calls of the commands do not show. */
export const adminFlags: readonly AdminCommand[] = [
  {
    call: '--by "name"',
    does: 'The person who decides a difference. Default: the account of the operating system.',
  },
  { call: '--json', does: 'One line of JSON instead of sentences.' },
]

const columns = 40

function line({ call, does }: AdminCommand): string {
  return call.length > columns
    ? `  ${call}\n  ${' '.repeat(columns)}${does}`
    : `  ${call.padEnd(columns)}${does}`
}

/** The text that `npm run admin -- --help` prints. */
export const usage = `Administers the service, whether it runs or not.

${adminCommands.map(line).join('\n')}

${adminFlags.map(line).join('\n')}
`
