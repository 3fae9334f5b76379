import type { EffectName, Op, Rule } from './effects.ts'
import { effectNames, effectOf, ops } from './effects.ts'
import type { SimulatorCall, Reply, SimulatorRoute } from './http.ts'
import { json, param, text } from './http.ts'
import type { OperatorKey } from './model.ts'
import { operatorKeys } from './model.ts'
import { operators } from './operators.ts'
import type { SimulatorContext } from './context.ts'

/** The most faults in force at once; each request is compared with all of them. */
const rulesMax = 1_000

/** The error of a fault that is malformed or impossible; the message says why. */
class Refused extends Error {}

/**
 * Makes the routes that add, remove and list faults, with the number of times that each happened. `POST
 * {match: {operator?, op?: one or a list, msisdn?, clientRef?}, effect, params?, times?, probability?,
 * draw?}` answers 201 with the fault and its `id`. `times` limits how often the fault happens to one request,
 * its repetitions included; `draw: "msisdn"` makes chance depend on the customer's number.
 */
export function faultRoutes({ rules }: SimulatorContext): SimulatorRoute[] {
  const shown = () => [...rules.list()].map(([id, rule]) => show(id, rule, rules.happened(id)))
  return [
    { method: 'GET', pattern: '/_sim/faults', handle: () => json(200, shown()) },
    {
      method: 'POST',
      pattern: '/_sim/faults',
      handle: (call) => {
        try {
          if (rules.list().size >= rulesMax) throw new Refused(`At most ${rulesMax} faults at once.`)
          const rule = readRule(call)
          const id = rules.add(rule)
          return json(201, show(id, rule, 0))
        } catch (error) {
          if (error instanceof Refused) return json(400, { message: error.message })
          throw error
        }
      },
    },
    {
      method: 'DELETE',
      pattern: '/_sim/faults/:id',
      handle: (call): Reply =>
        rules.remove(param(call, 'id')) ? { status: 204 } : json(404, { message: 'There is no such fault.' }),
    },
    {
      method: 'DELETE',
      pattern: '/_sim/faults',
      handle: (): Reply => {
        rules.removeAll()
        return { status: 204 }
      },
    },
  ]
}

/** Finds an operator by its name or its letter. */
export function operatorNamed(name: unknown): OperatorKey | undefined {
  return operatorKeys.find((key) => key === name || operators[key].name === name)
}

function show(id: string, rule: Rule, happened: number): object {
  const { match, ...rest } = rule
  const { operator, ops: op, msisdn, clientReference: clientRef } = match
  return {
    id,
    match: { ...(operator && { operator: operators[operator].name }), op, msisdn, clientRef },
    ...rest,
    happened,
  }
}

function readRule(call: SimulatorCall): Rule {
  const body = call.object()
  if (!body) throw new Refused('The body must be a JSON object.')
  const effect = effectNames.find((known) => known === body['effect'])
  if (!effect) throw new Refused(`effect: one of ${effectNames.join(', ')}.`)
  const match = readMatch(effect, part(body, 'match'))
  const { params, when } = readParams(effect, part(body, 'params'))
  const times = optional(body, 'times', (value) => isWhole(value) && value >= 1)
  if (times !== null && effectOf(effect).stages.includes('line'))
    throw new Refused('times: a statement says the same each time it is read; match by clientRef instead.')
  const probability = optional(body, 'probability', (value) => value >= 0 && value <= 1) ?? 1
  const draw = body['draw'] ?? 'reference'
  if (draw !== 'reference' && draw !== 'msisdn') throw new Refused('draw: reference or msisdn.')
  return { match, effect, params, when, times, probability, draw }
}

function readMatch(effect: EffectName, match: Readonly<Record<string, unknown>>): Rule['match'] {
  onlyKnown('match', match, ['operator', 'op', 'msisdn', 'clientRef'])
  const { ops: possible, impossible } = effectOf(effect)
  const operator = operatorNamed(match['operator'])
  if (match['operator'] !== undefined && !operator)
    throw new Refused('match.operator: OperatorA to OperatorD.')
  const why = operator && impossible?.(operator)
  if (operator && why) throw new Refused(`${effect}: not at ${operators[operator].name}, ${why}.`)
  const wanted = match['op'] === undefined ? undefined : [match['op']].flat()
  const asked = wanted?.map((name): Op => {
    const op = ops.find((known) => known === name)
    if (!op) throw new Refused(`match.op: ${ops.join(', ')}, or a list of them.`)
    if (!possible.includes(op))
      throw new Refused(`${effect}: happens to ${possible.join(', ')}, not to ${op}.`)
    return op
  })
  const msisdn = text(match, 'msisdn')
  const clientReference = text(match, 'clientRef')
  return {
    ...(operator && { operator }),
    ...(asked && { ops: asked }),
    ...(msisdn && { msisdn }),
    ...(clientReference && { clientReference }),
  }
}

function readParams(
  effect: EffectName,
  given: Readonly<Record<string, unknown>>,
): Pick<Rule, 'params' | 'when'> {
  const { parameters = {}, when: usual } = effectOf(effect)
  onlyKnown('params', given, [...Object.keys(parameters), ...(usual ? ['when'] : [])])
  const when = given['when'] ?? usual ?? 'before'
  if (when !== 'before' && when !== 'after')
    throw new Refused('params.when: before or after (the execution).')
  const params: Record<string, number> = {}
  for (const [name, { default: value, min, max }] of Object.entries(parameters)) {
    params[name] = optional(given, name, (own) => isWhole(own) && own >= min && own <= max) ?? value
  }
  return { params, when }
}

function part(body: Readonly<Record<string, unknown>>, field: string): Readonly<Record<string, unknown>> {
  const value = body[field] ?? {}
  if (typeof value !== 'object' || Array.isArray(value)) throw new Refused(`${field}: an object.`)
  return value as Readonly<Record<string, unknown>>
}

function optional(
  body: Readonly<Record<string, unknown>>,
  field: string,
  fits: (value: number) => boolean,
): number | null {
  const value = body[field] ?? null
  if (value === null) return null
  if (typeof value !== 'number' || !fits(value)) throw new Refused(`${field}: out of its bounds.`)
  return value
}

function isWhole(value: number): boolean {
  return Number.isSafeInteger(value)
}

function onlyKnown(field: string, given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new Refused(`${field}.${unknown}: not known; ${known.join(', ') || 'it takes nothing'}.`)
}
