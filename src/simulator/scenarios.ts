import type { EffectName, Rule } from './effects.ts'
import type { Reason } from './model.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The unit of the two digits PP of a test number. */
export type ParameterUnit = 'seconds' | 'minutes' | 'hours' | 'times' | 'copies' | 'francs'

/**
 * The act of the customer or the operator. `refuseAtOnce` is part of the operator's first answer where the
 * protocol allows it; a hosted checkout does not: the session is created and its payment fails at once. With
 * `refuse`, the operator accepts the request first and reports the refusal later.
 */
export type ScenarioAct =
  | { readonly does: 'confirm' }
  | { readonly does: 'refuse' | 'refuseAtOnce'; readonly reason: Reason }
  /** A person answers on the telephone page; the operator closes nothing by itself. */
  | { readonly does: 'wait' }
  /** The operator closes the prompt after the time of the parameter PP. */
  | { readonly does: 'expire' }
  /** The customer does not answer, and the operator never closes the prompt. */
  | { readonly does: 'nothing' }

/** The built-in fault of a number. The parameter PP may set one of its values. */
interface BuiltIn {
  readonly effect: EffectName
  /** The value of the effect that PP sets: `ms` from seconds, the others as they are. */
  readonly takes?: 'ms' | 'copies' | 'less' | 'retry_after_s'
  /**
   * How often the fault happens to one request. `PP`: as the parameter says (0: each time); absent: each
   * time.
   */
  readonly times?: number | 'PP'
  readonly when?: Rule['when']
  readonly params?: Rule['params']
}

/** One row of the table of test numbers `+223 70 SS PP xx`. */
export interface Scenario {
  readonly code: string
  readonly parameter: ParameterUnit | null
  /** The meaning of PP = 00, in the unit of the parameter. */
  readonly whenZero?: number
  readonly act: ScenarioAct
  readonly fault?: BuiltIn
  /** The final status of a collection, for a client that asks correctly. */
  readonly ends: 'success' | 'failed' | 'expired' | 'reversed' | 'undecided'
  readonly en: string
  readonly fr: string
  /** The behaviour in a protocol that cannot show the scenario. */
  readonly elsewhere?: { readonly en: string; readonly fr: string }
  /** `later`: announced, behaves like an ordinary number for now. */
  readonly since: 'now' | 'later'
}

const confirm: ScenarioAct = { does: 'confirm' }
const person: ScenarioAct = { does: 'wait' }
const expire: ScenarioAct = { does: 'expire' }
const silence: ScenarioAct = { does: 'nothing' }
const ordinaryDelayMs = 3 * second

/** The course of an operation in a scenario. */
export interface ScenarioPart {
  readonly scenario: string
  readonly act: ScenarioAct
  readonly afterMs: number
  readonly ordinary: boolean
}

const endings = {
  confirm: 'success',
  refuse: 'failed',
  refuseAtOnce: 'failed',
  expire: 'failed',
  wait: 'undecided',
  nothing: 'expired',
} as const satisfies Record<ScenarioAct['does'], Scenario['ends']>

/**
 * The note for operators without callbacks: there these numbers behave as 00, because there is no callback to
 * lose or forge.
 */
const withoutCallback = {
  en: 'OperatorC (polled) and payouts of B and D (answered at once): as 00',
  fr: 'OperatorC (interrogé) et envois de B et D (réponse immédiate) : comme 00',
}

/** All test numbers, for all operators, and for both collections and disbursements. */
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
  row(
    '06',
    'seconds',
    refuse('wrongPin'),
    'three wrong PINs, after PP s',
    'trois codes incorrects, après PP s',
  ),
  row('07', null, refuse('busy'), 'another session is open', 'une autre session est ouverte'),
  later('08', null, 'same number and amount too soon', 'même numéro et montant trop tôt'),
  row('09', null, person, 'a person decides on the page', 'une personne décide sur la page'),
  row('10', 'minutes', expire, 'prompt expires after PP min (00: 5)', 'expire après PP min (00 : 5)', 5),
  row('11', null, silence, 'never answers', 'ne répond jamais'),
  row('12', 'hours', confirm, 'confirms after PP h (00: 25)', 'confirme après PP h (00 : 25)', 25),
  fault('20', null, { effect: 'close_after', times: 1 }, 'executed, answer lost', 'exécuté, réponse perdue'),
  fault(
    '21',
    'seconds',
    { effect: 'delay', takes: 'ms', times: 1 },
    'executed, answered after PP s (00: 30)',
    'exécuté, réponse après PP s (00 : 30)',
    { whenZero: 30 },
  ),
  fault(
    '22',
    'times',
    { effect: 'status', times: 'PP', when: 'before' },
    '503 before execution, PP times (00: once; from 02 on it ends as expired)',
    "503 avant l'exécution, PP fois (00 : une ; dès 02 il finit expiré)",
    { whenZero: 1 },
  ),
  fault(
    '23',
    null,
    { effect: 'status', times: 1, when: 'after', params: { status: 500 } },
    '500 after execution',
    "500 après l'exécution",
  ),
  fault(
    '24',
    'seconds',
    { effect: 'late_execution', takes: 'ms', times: 1 },
    'executed PP s after the connection broke (00: 3)',
    'exécuté PP s après la coupure (00 : 3)',
    { whenZero: 3 },
  ),
  fault(
    '25',
    'seconds',
    { effect: 'rate_limit', takes: 'retry_after_s', times: 1 },
    '429 with Retry-After PP, once (00: 1)',
    '429 avec Retry-After PP, une fois (00 : 1)',
    { whenZero: 1 },
  ),
  fault(
    '26',
    'times',
    { effect: 'html', times: 'PP', when: 'before' },
    'HTML page of a gateway, PP times (00: once; from 02 on as 22)',
    "page HTML d'une passerelle, PP fois (00 : une ; dès 02 comme 22)",
    { whenZero: 1 },
  ),
  // An operator that knows the number has received the request, so it cannot be unreachable: it answers each
  // time that nothing was executed.
  fault(
    '27',
    null,
    { effect: 'rate_limit', params: { retry_after_s: 5 } },
    'never reachable: rejected each time (429), nothing executed',
    'jamais joignable : rejeté chaque fois (429), rien exécuté',
    { ends: 'failed' },
  ),
  callbackFault('30', null, { effect: 'cb_drop' }, 'callback lost', 'rappel perdu'),
  callbackFault(
    '31',
    'copies',
    { effect: 'cb_duplicate', takes: 'copies' },
    'callback PP times over (00: 3)',
    'rappel répété PP fois (00 : 3)',
    { whenZero: 3 },
  ),
  callbackFault(
    '32',
    null,
    { effect: 'cb_reorder' },
    'stale "pending" after success',
    '« en attente » périmé après le succès',
  ),
  callbackFault(
    '33',
    null,
    { effect: 'cb_bad_signature' },
    'callback with a bad signature or digest',
    'rappel mal signé, ou empreinte fausse',
  ),
  callbackFault(
    '34',
    null,
    { effect: 'cb_before_response' },
    'callback before the answer',
    'rappel avant la réponse',
  ),
  callbackFault(
    '35',
    null,
    { effect: 'cb_contradict' },
    'callback says failed, query success',
    'le rappel dit échec, la lecture succès',
  ),
  fault(
    '40',
    'seconds',
    { effect: 'reversal', takes: 'ms' },
    'succeeds, reversed after PP s (00: at once)',
    'réussit, annulé après PP s (00 : aussitôt)',
    { ends: 'reversed' },
  ),
  fault(
    '41',
    'francs',
    { effect: 'wrong_amount', takes: 'less' },
    'settles PP francs less (00: 1)',
    'règle PP francs de moins (00 : 1)',
    { whenZero: 1 },
  ),
  fault(
    '51',
    'times',
    { effect: 'no_float', times: 'PP' },
    'our money at the operator does not suffice for a payment out, PP times (00: always); a collection as 00',
    'notre réserve y est vide pour un envoi, PP fois (00 : toujours) ; un paiement comme 00',
  ),
]

const byCode = new Map(scenarios.map((scenario) => [scenario.code, scenario]))
const testNumber = /^\+22370\d{6}$/

/**
 * Returns the course of an operation by the customer's number; a number without a scenario confirms after 3
 * s.
 */
export function partOf(msisdn: string): ScenarioPart {
  const { scenario, count } = read(msisdn)
  if (!scenario || scenario.since === 'later') {
    return { scenario: scenario?.code ?? 'ordinary', act: confirm, afterMs: ordinaryDelayMs, ordinary: true }
  }
  const { code, act, fault: what, parameter } = scenario
  return { scenario: code, act, afterMs: what ? 0 : count * unitMs(parameter), ordinary: false }
}

/** Returns the built-in fault rule of a number, if it has one. */
export function ruleOf(msisdn: string): Rule | null {
  const { scenario, count } = read(msisdn)
  const what = scenario?.fault
  if (!what) return null
  const figure = what.takes === 'ms' ? count * second : count
  return {
    match: { ops: ['collect', 'disburse'] },
    effect: what.effect,
    params: { ...what.params, ...(what.takes ? { [what.takes]: figure } : {}) },
    when: what.when ?? 'before',
    times: what.times === 'PP' ? count || null : (what.times ?? null),
    probability: 1,
    draw: 'reference',
  }
}

function read(msisdn: string): { scenario: Scenario | undefined; count: number } {
  const scenario = testNumber.test(msisdn) ? byCode.get(msisdn.slice(6, 8)) : undefined
  return { scenario, count: scenario ? Number(msisdn.slice(8, 10)) || (scenario.whenZero ?? 0) : 0 }
}

function unitMs(unit: ParameterUnit | null): number {
  if (unit === 'seconds') return second
  if (unit === 'minutes') return minute
  return unit === 'hours' ? hour : 0
}

function refuse(reason: Reason): ScenarioAct {
  return { does: 'refuse', reason }
}

function refuseAtOnce(reason: Reason): ScenarioAct {
  return { does: 'refuseAtOnce', reason }
}

function row(
  code: string,
  parameter: ParameterUnit | null,
  act: ScenarioAct,
  en: string,
  fr: string,
  whenZero?: number,
): Scenario {
  const ends = endings[act.does]
  return { code, parameter, act, ends, en, fr, since: 'now', ...(whenZero === undefined ? {} : { whenZero }) }
}

function fault(
  code: string,
  parameter: ParameterUnit | null,
  what: BuiltIn,
  en: string,
  fr: string,
  more: Partial<Pick<Scenario, 'whenZero' | 'ends' | 'elsewhere'>> = {},
): Scenario {
  return { ...row(code, parameter, confirm, en, fr), fault: what, ...more }
}

function callbackFault(...[code, parameter, what, en, fr, more]: Parameters<typeof fault>): Scenario {
  return fault(code, parameter, what, en, fr, { elsewhere: withoutCallback, ...more })
}

function later(code: string, parameter: ParameterUnit | null, en: string, fr: string): Scenario {
  return { ...row(code, parameter, confirm, en, fr), since: 'later' }
}
