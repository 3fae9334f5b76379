import { createClient, type Client as SocketClient } from 'graphql-ws'
import { authorize, type Credentials, Stop } from '../client-program.ts'
import type { Customer } from './customers.ts'

/** A change of a payment, as the subscription sends it. */
export interface DemoChange {
  sequence: number
  /** The status as in REST, in lower case. */
  status: string
  reference: string
  amount: number
  paymentMethod: string
  late: boolean
  failureReason: string | null
  occurredAt: string
}

/** A client of the public API that is signed in as a merchant. */
export interface Client {
  /** Returns the available balance in whole XOF. */
  balance(): Promise<number>
  collect(reference: string, customer: Customer): Promise<void>
  /** @param by ISO 8601, `PT24H` */
  advanceClock(by: string): Promise<void>
  /** Yields every change of the merchant's log from its beginning until `close`. */
  changes(): AsyncIterable<DemoChange>
  close(): Promise<void>
}

/**
 * Signs in over REST; all other calls use GraphQL.
 * @throws Stop if the service rejects the credentials
 */
export async function signIn(url: string, credentials: Credentials): Promise<Client> {
  const authorization = await authorize(url, credentials)
  const socket = createClient({
    url: `${url.replace(/^http/, 'ws')}/graphql`,
    connectionParams: { authorization },
    retryAttempts: 0,
  })
  const run = (query: string, variables: object) => runOperation(url, authorization, query, variables)
  return {
    balance: async () =>
      ((await run('{ balance { available } }', {})) as { balance: { available: number } }).balance.available,
    async collect(reference, { phone, operator, amount }) {
      await run(collectPayment, {
        input: { amount, customerPhone: phone, paymentMethod: operator, reference },
      })
    },
    async advanceClock(by) {
      await run('mutation ($by: Duration!) { sandboxAdvanceClock(by: $by) }', { by })
    },
    changes: () => readChanges(socket),
    close: async () => socket.dispose(),
  }
}

async function* readChanges(socket: SocketClient): AsyncGenerator<DemoChange> {
  try {
    const events = socket.iterate<{ transactionChanged: DemoChange }>({ query: transactionChanged })
    for await (const { data, errors } of events) {
      if (!data) throw new Stop(`The subscription ended: ${errors?.[0]?.message}`)
      yield { ...data.transactionChanged, status: data.transactionChanged.status.toLowerCase() }
    }
  } catch (error) {
    // graphql-ws throws an event, not an Error, if the socket closes.
    if (error instanceof CloseEvent)
      throw new Stop(`The subscription was closed: ${error.reason || error.code}.`)
    throw error
  }
}

const transactionChanged = `subscription {
  transactionChanged(after: "0") {
    sequence status reference amount paymentMethod late failureReason occurredAt
  }
}`

/**
 * If the operator refuses a payment at once, this mutation returns a refusal; the payment is still recorded.
 */
const collectPayment = `mutation ($input: CollectPaymentInput!) {
  collectPayment(input: $input) {
    ... on PaymentInitiation { status }
    ... on Refusal { code message }
  }
}`

async function runOperation(
  url: string,
  authorization: string,
  query: string,
  variables: object,
): Promise<unknown> {
  const answer = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', authorization },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.timeout(15_000),
  })
  const { data, errors } = (await answer.json()) as { data?: unknown; errors?: { message: string }[] }
  if (errors?.[0]) throw new Error(`GraphQL: ${errors[0].message}`)
  return data
}
