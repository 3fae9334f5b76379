import type { Reason } from './reasons.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** What the two digits PP of a test number count. */
export type ParameterUnit = 'seconds' | 'minutes' | 'hours' | 'times' | 'copies' | 'francs'

/**
 * What the customer or the operator does about an operation.
 * `refuseAtOnce` is said in the operator's first answer where the protocol has a place for it; a hosted
 * checkout has none: the session is made and its payment fails at once. `refuse` is accepted and told later.
 */
export type Act =
  | { readonly does: 'confirm' }
  | { readonly does: 'refuse' | 'refuseAtOnce'; readonly reason: Reason }
  /** A person answers on the telephone page; the operator closes nothing by itself. */
  | { readonly does: 'wait' }
  /** The operator closes the prompt after the parameter. */
  | { readonly does: 'expire' }
  /** Nobody answers and the operator never closes. */
  | { readonly does: 'nothing' }

/** A row of the table of test numbers `+223 70 SS PP xx`. */
export interface Scenario {
  readonly code: string
  readonly parameter: ParameterUnit | null
  /** What PP = 00 stands for, in the unit of the parameter. */
  readonly whenZero?: number
  readonly act: Act
  readonly en: string
  readonly fr: string
  /** `later`: announced, behaves like an ordinary number for now. */
  readonly since: 'now' | 'later'
}

const confirm: Act = { does: 'confirm' }
const person: Act = { does: 'wait' }
const expire: Act = { does: 'expire' }
const silence: Act = { does: 'nothing' }
const ordinaryDelayMs = 3 * second

/** An operation as a scenario plays it. */
export interface Part {
  readonly scenario: string
  readonly act: Act
  readonly afterMs: number
  readonly ordinary: boolean
}

/** Every test number, for all operators and for collections and disbursements alike. */
export const scenarios: readonly Scenario[] = [
  row('00', 'seconds', confirm, 'confirms after PP s (00: at once)', 'confirme après PP s (00 : aussitôt)'),
  row('01', 'seconds', refuse('declined'), 'declines after PP s', 'refuse après PP s'),
  row(
    '02',
    'seconds',
    refuse('insufficientFunds'),
    'insufficient funds, after PP s',
    'solde insuffisant, après PP s',
  ),
  row('03', null, refuseAtOnce('notFound'), 'no such wallet', 'aucun compte à ce numéro'),
  row('04', null, refuse('limit'), 'limit reached', 'plafond atteint'),
  row('05', null, refuseAtOnce('blocked'), 'account blocked', 'compte bloqué'),
  row('06', 'seconds', refuse('wrongPin'), 'three wrong PINs, after PP s', 'trois codes faux, après PP s'),
  row('07', null, refuse('busy'), 'another session is open', 'une autre session est ouverte'),
  later('08', null, 'same number and amount too soon', 'même numéro et montant trop tôt'),
  row('09', null, person, 'a person decides on the page', 'une personne décide sur la page'),
  row('10', 'minutes', expire, 'prompt expires after PP min (00: 5)', 'expire après PP min (00 : 5)', 5),
  row('11', null, silence, 'never answers', 'ne répond jamais'),
  row('12', 'hours', confirm, 'confirms after PP h (00: 25)', 'confirme après PP h (00 : 25)', 25),
  later('20', null, 'executed, answer lost', 'exécuté, réponse perdue'),
  later('21', 'seconds', 'answer slower than the deadline', 'réponse plus lente que le délai'),
  later('22', 'times', '503 before execution, PP times', "503 avant l'exécution, PP fois"),
  later('23', null, '500 after execution', "500 après l'exécution"),
  later('24', 'seconds', 'executed after the connection broke', 'exécuté après la coupure'),
  later('25', 'seconds', '429 with Retry-After PP', '429 avec Retry-After PP'),
  later('26', 'times', 'HTML error page', "page d'erreur HTML"),
  later('27', null, 'never reachable', 'jamais joignable'),
  later('30', null, 'callback lost', 'rappel perdu'),
  later('31', 'copies', 'callback PP times over', 'rappel répété PP fois'),
  later('32', null, 'stale "pending" after success', '« en attente » périmé après le succès'),
  later('33', null, 'callback with a bad signature', 'rappel mal signé'),
  later('34', null, 'callback before the answer', 'rappel avant la réponse'),
  later('35', null, 'callback says failed, query success', 'le rappel dit échec, la lecture succès'),
  later('40', 'seconds', 'succeeds, reversed after PP s', 'réussit, annulé après PP s'),
  later('41', 'francs', 'settles PP francs less', 'règle PP francs de moins'),
  later('51', null, 'our float is empty', "la réserve de l'opérateur est vide"),
]

const byCode = new Map(scenarios.map((scenario) => [scenario.code, scenario]))
const testNumber = /^\+22370(\d\d)(\d\d)\d\d$/

/** What the owner of a number does; any number without a scenario confirms after 3 s. */
export function partOf(msisdn: string): Part {
  const [, code = '', digits = ''] = testNumber.exec(msisdn) ?? []
  const scenario = byCode.get(code)
  if (!scenario || scenario.since === 'later') {
    return { scenario: scenario?.code ?? 'ordinary', act: confirm, afterMs: ordinaryDelayMs, ordinary: true }
  }
  const count = Number(digits) === 0 ? (scenario.whenZero ?? 0) : Number(digits)
  const afterMs = count * unitMs(scenario.parameter)
  return { scenario: code, act: scenario.act, afterMs, ordinary: false }
}

function unitMs(unit: ParameterUnit | null): number {
  if (unit === 'seconds') return second
  if (unit === 'minutes') return minute
  return unit === 'hours' ? hour : 0
}

function refuse(reason: Reason): Act {
  return { does: 'refuse', reason }
}

function refuseAtOnce(reason: Reason): Act {
  return { does: 'refuseAtOnce', reason }
}

function row(
  code: string,
  parameter: ParameterUnit | null,
  act: Act,
  en: string,
  fr: string,
  whenZero?: number,
): Scenario {
  return { code, parameter, act, en, fr, since: 'now', ...(whenZero === undefined ? {} : { whenZero }) }
}

function later(code: string, parameter: ParameterUnit | null, en: string, fr: string): Scenario {
  return { code, parameter, act: confirm, en, fr, since: 'later' }
}
