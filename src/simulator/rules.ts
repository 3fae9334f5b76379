import { createHash } from 'node:crypto'
import type { EffectName, Op, Rule, FaultStage } from './effects.ts'
import { effectOf } from './effects.ts'
import type { OperatorKey } from './model.ts'
import { ruleOf } from './scenarios.ts'

/**
 * The facts of a request that faults may depend on: its operator, kind and customer. Unknown names are empty.
 */
export interface Facts {
  readonly operator: OperatorKey
  readonly op: Op
  readonly msisdn: string
  readonly clientReference: string
  /** The identity of the request: its repetitions have the same key. */
  readonly key: string
}

/** An effect that takes place. */
export interface Played {
  readonly effect: EffectName
  readonly params: Readonly<Record<string, number>>
}

/**
 * All rules in force. Chance depends on the seed, the rule, the number of repetitions, and the request (or
 * the customer's number, see `draw`), never on the order in which different requests arrive.
 */
export class Rules {
  readonly #rules = new Map<string, Rule>()
  readonly #visits = new Map<string, number>()
  readonly #happened = new Map<string, number>()
  #seed: string
  #count = 0

  constructor(seed: string) {
    this.#seed = seed
  }

  /** @returns the rule's id, the same in every run */
  add(rule: Rule): string {
    this.#count += 1
    const id = `fault-${this.#count}`
    this.#rules.set(id, rule)
    return id
  }

  /** Sets a rule under a name; an older rule with this name is replaced. */
  set(id: string, rule: Rule): void {
    this.#rules.set(id, rule)
  }

  get(id: string): Rule | undefined {
    return this.#rules.get(id)
  }

  remove(id: string): boolean {
    return this.#rules.delete(id)
  }

  /** Removes all rules. The counts of test numbers continue, and no id is given twice. */
  removeAll(): void {
    this.#rules.clear()
  }

  list(): ReadonlyMap<string, Rule> {
    return this.#rules
  }

  /** Whether a rule may apply to a request. */
  concern({ msisdn }: Facts): boolean {
    return this.#rules.size > 0 || ruleOf(msisdn) !== null
  }

  /** Whether a rule in force has effects at a stage. The rules of test numbers have none in statements. */
  haveStage(stage: FaultStage): boolean {
    return [...this.#rules.values()].some((rule) => belongsTo(rule, stage))
  }

  /** Returns how often a rule took effect. */
  happened(id: string): number {
    return this.#happened.get(id) ?? 0
  }

  /** Removes all rules, and starts counting and drawing anew. */
  clear(seed: string = this.#seed): void {
    for (const table of [this.#rules, this.#visits, this.#happened]) table.clear()
    this.#seed = seed
    this.#count = 0
  }

  /** Returns the effects at a stage of a request: the oldest rule first, the number's own rule last. */
  play(stage: FaultStage, facts: Facts): Played[] {
    const played: Played[] = []
    for (const [id, rule] of this.#rules) if (this.#strikes(id, rule, stage, facts)) played.push(rule)
    const builtIn = ruleOf(facts.msisdn)
    if (builtIn && this.#strikes(`number ${facts.msisdn}`, builtIn, stage, facts)) played.push(builtIn)
    return played
  }

  #strikes(id: string, rule: Rule, stage: FaultStage, facts: Facts): boolean {
    if (!belongsTo(rule, stage) || !matches(rule, facts)) return false
    const of = rule.draw === 'msisdn' && facts.msisdn !== '' ? `${facts.op} ${facts.msisdn}` : facts.key
    const counter = `${id} ${stage} ${facts.operator} ${of}`
    // A statement is the same each time it is read.
    if (stage === 'line') return draw(`${this.#seed} ${counter}`) < rule.probability
    const visit = this.#next(counter)
    if (rule.probability < 1 && draw(`${this.#seed} ${counter} ${visit}`) >= rule.probability) return false
    if (rule.effect === 'poll_limit' && visit <= (rule.params['polls'] ?? 0)) return false
    if (rule.times !== null && this.#next(`${counter} times`) > rule.times) return false
    this.#happened.set(id, this.happened(id) + 1)
    return true
  }

  #next(counter: string): number {
    const count = (this.#visits.get(counter) ?? 0) + 1
    this.#visits.set(counter, count)
    return count
  }
}

function belongsTo({ effect, when }: Rule, stage: FaultStage): boolean {
  const known = effectOf(effect)
  if (known.when === undefined) return known.stages.includes(stage)
  return stage === (when === 'before' ? 'in' : 'out')
}

function matches({ match, effect }: Rule, facts: Facts): boolean {
  const { ops, impossible } = effectOf(effect)
  return (
    ops.includes(facts.op) &&
    !impossible?.(facts.operator) &&
    (match.operator === undefined || match.operator === facts.operator) &&
    (match.ops === undefined || match.ops.includes(facts.op)) &&
    (match.msisdn === undefined || match.msisdn === facts.msisdn) &&
    (match.clientReference === undefined || match.clientReference === facts.clientReference)
  )
}

/** Returns a number from 0 up to (not including) 1 that belongs to a text. */
function draw(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32
}
