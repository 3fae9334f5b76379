import type { Op } from './effects.ts'
import type { SimulatorCall } from './http.ts'
import { header, text } from './http.ts'
import type { SimulatedOperation } from './model.ts'
import type { OperatorProfile } from './operators.ts'
import type { Facts } from './rules.ts'
import type { Store } from './store.ts'

/**
 * The kinds of requests by method and path below the operator's base; the group in a pattern is the
 * operation's id.
 */
const gsmaOps: readonly (readonly [Op, string, RegExp])[] = [
  ['collect', 'POST', /^\/transactions\/type\/merchantpay$/],
  ['disburse', 'POST', /^\/transactions\/type\/disbursement$/],
  ['reverse', 'POST', /^\/transactions\/([^/]+)\/reversals$/],
  ['cancel', 'PATCH', /^\/transactions\/([^/]+)$/],
  ['query', 'GET', /^\/(?:transactions|requeststates|responses|errors)\/([^/]+)$/],
  ['health', 'GET', /^\/heartbeat$/],
  ['lookup', 'GET', /^\/accounts\/msisdn\//],
  ['balance', 'GET', /^\/accounts\/(?:.+\/)?balance$/],
  ['statement', 'GET', /^\/accounts\//],
]
const checkoutOps: typeof gsmaOps = [
  ['collect', 'POST', /^\/checkout\/sessions$/],
  ['disburse', 'POST', /^\/payout$/],
  ['reverse', 'POST', /^\/(?:checkout\/sessions|payout)\/([^/]+)\/(?:refund|reverse)$/],
  ['cancel', 'POST', /^\/checkout\/sessions\/([^/]+)\/expire$/],
  ['query', 'GET', /^\/(?:checkout\/sessions|payouts)\/search$/],
  ['query', 'GET', /^\/(?:checkout\/sessions|payout)\/?([^/]*)$/],
  ['balance', 'GET', /^\/balance$/],
  ['statement', 'GET', /^\/transactions$/],
]

/**
 * Returns the kind of a request with its operator and customer; null for a request that no operator knows.
 */
export function factsOf(profile: OperatorProfile, call: SimulatorCall, store: Store): Facts | null {
  const { key: operator, protocol, basePath } = profile
  const noCustomer = { operator, msisdn: '', clientReference: '' }
  if (call.path === `/op-${operator}/oauth/token`) return { ...noCustomer, op: 'token', key: 'token' }
  const path = call.path.startsWith(basePath) ? call.path.slice(basePath.length) : ''
  for (const [op, method, pattern] of protocol === 'gsma' ? gsmaOps : checkoutOps) {
    const found = method === call.method && pattern.exec(path)
    if (!found) continue
    if (op === 'collect' || op === 'disburse') return ofCreation(profile, op, call)
    return ofOperation(profile, op, call, found[1] ?? '', store)
  }
  return null
}

/** Returns the facts of the request that created an operation. */
export function factsAbout({
  operator,
  kind,
  msisdn,
  clientReference,
  correlationId,
}: SimulatedOperation): Facts {
  const key = `${kind} ${clientReference || correlationId}`
  return { operator, op: kind, msisdn: msisdn ?? '', clientReference, key }
}

function ofCreation({ key: operator, protocol }: OperatorProfile, op: Op, call: SimulatorCall): Facts {
  const body = call.object() ?? {}
  const gsma = protocol === 'gsma'
  const clientReference = text(body, gsma ? 'requestingOrganisationTransactionReference' : 'client_reference')
  const named = gsma ? partyNumber(body[op === 'collect' ? 'debitParty' : 'creditParty']) : ''
  const msisdn = gsma ? named : text(body, op === 'collect' ? 'restrict_payer_mobile' : 'mobile')
  const correlationId = header(call, gsma ? 'x-correlationid' : 'idempotency-key')
  return { operator, op, msisdn, clientReference, key: `${op} ${clientReference || correlationId}` }
}

function ofOperation(
  profile: OperatorProfile,
  op: Op,
  call: SimulatorCall,
  name: string,
  store: Store,
): Facts {
  const { key: operator } = profile
  const searched = call.query.get('client_reference') ?? ''
  const wanted = name || (call.query.get('transaction_id') ?? '')
  const operation =
    store.operation(wanted) ??
    store.named(operator, wanted) ??
    store.correlated(operator, wanted) ??
    store.newestWithReference(operator, searched)
  const clientReference = operation?.clientReference || searched
  // Questions about the whole account name no operation: all of them count as one request.
  const about = clientReference || wanted
  const { msisdn = '' } = operation ?? {}
  return { operator, op, msisdn: msisdn ?? '', clientReference, key: `${op} ${about}` }
}

function partyNumber(parties: unknown): string {
  for (const pair of Array.isArray(parties) ? (parties as unknown[]) : []) {
    if (typeof pair !== 'object' || pair === null) continue
    const row = pair as Readonly<Record<string, unknown>>
    if (text(row, 'key').toLowerCase() === 'msisdn') {
      return `+${text(row, 'value')
        .replace(/^(\+|00)/, '')
        .replaceAll(' ', '')}`
    }
  }
  return ''
}
