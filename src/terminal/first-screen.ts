import { styleText } from 'node:util'
import type { App } from '../app.ts'
import type { NewMerchant } from '../resources/merchants/create.ts'
import { formatXof, type Xof } from '../shared/money.ts'

/** The facts that the first screen shows. */
interface Start {
  app: App
  /** The first merchant of the sandbox, only on the first start: its secret is shown this once. */
  first: NewMerchant | null
  funds: Xof
  /** The token of the link that signs the owner in; null where the account is not active. */
  signInToken: string | null
  startedMs: number
}

/** Writes the first screen, which shows a person what to do next. Without a terminal it has no colours. */
export function firstScreen({ app, first, funds, signInToken, startedMs }: Start): string {
  const { services } = app
  const base = services.addresses.publicUrl
  const bold = (text: string) => styleText('bold', text)
  const dim = (text: string) => styleText('dim', text)
  const row = (name: string, value: string) => `  ${name.padEnd(14)}${value}`
  const sandbox = services.config.mode === 'sandbox'
  const seconds = (startedMs / 1_000).toFixed(1)
  const lines = [
    '',
    `${bold('Merchant payments')} ${services.config.mode} ${dim(`ready in ${seconds} s`)}`,
    '',
    ...(signInToken
      ? [row('Dashboard', `${base}/app#${signInToken}${dim('   (signs the owner in once)')}`)]
      : []),
    row('REST', `${base}/merchant/api`),
    row('GraphQL', `${base}/graphql${sandbox ? dim('   (a browser shows GraphiQL)') : ''}`),
    ...(services.simulatorUrl
      ? [row('Phones', `${services.simulatorUrl}/phone${dim('   (answer as the customer)')}`)]
      : []),
    row('Docs', `${base}/schema.graphql${dim('   (README.md and src/docs in this folder)')}`),
    ...(services.config.databaseUrl
      ? []
      : [row('Data', `${services.config.dataDir}${dim('   (Ctrl-C ends the service and keeps it)')}`)]),
    '',
  ]
  if (services.restores.isWaiting()) {
    lines.push(
      `  ${bold('The database was restored: no money leaves.')} Changes after the backup may be lost.`,
      '  This command asks the operators about the lost changes, and lets money leave again:',
      `  ${bold('npm run admin -- restore accept')}`,
      '',
    )
  }
  if (first) {
    lines.push(
      `  ${bold('Your sandbox merchant')} has ${formatXof(funds, 'en')}. The secret is shown this once:`,
      row('API key', first.apiKey),
      row('API secret', first.apiSecret.reveal()),
      '',
      `  ${bold('A first payment')}: copy these three commands`,
      ...firstPayment(base, first).map((line) => `  ${line}`),
      '',
    )
  } else if (sandbox) {
    lines.push(
      '  Another merchant, with a key and a secret:',
      `  ${bold('npm run admin -- merchant create --name "Shop"')}`,
      '',
    )
  }
  if (sandbox) lines.push(`  ${dim('In another terminal:')} npm run demo`, '')
  return `${lines.join('\n')}\n`
}

function firstPayment(base: string, { apiKey, apiSecret }: NewMerchant): string[] {
  const credentials = `-H 'X-API-Key: ${apiKey}' -H 'X-API-Secret: ${apiSecret.reveal()}'`
  const body = { amount: 5000, customer_phone: '70000300', payment_method: 'OperatorA', reference: 'order-1' }
  const readToken = `sed -n 's/.*"token":"\\([^"]*\\)".*/\\1/p'`
  const headers = `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`
  return [
    `TOKEN=$(curl -s -X POST ${base}/merchant/api/auth ${credentials} | ${readToken})`,
    `curl -sw '\\n' ${base}/merchant/api/pay ${headers} -d '${JSON.stringify(body)}'`,
    `curl -sw '\\n' ${base}/merchant/api/payment/status/order-1`,
  ]
}
