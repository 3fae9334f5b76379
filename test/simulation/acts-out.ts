import type fc from 'fast-check'
import { expect } from 'vitest'
import type { Context, Services } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { DomainError } from '../../src/shared/errors.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import type { MoneyModel } from './model-out.ts'
import { compare, find, type ModelItem, readItems } from './payment-states.ts'
import { contextOf, type Treatment, type SimulationEnvironment } from './environment.ts'

/** The service under test, and the payments that one run made in it. */
export interface RealOut {
  environment: SimulationEnvironment
  services: Services
  merchants: readonly SignedInMerchant[]
  /** The items of the model by the operator's names of them. */
  names: Map<string, ModelItem>
}

export type OutCommand = fc.AsyncCommand<MoneyModel, RealOut>

/** Makes a command that compares model and service at its end. */
export function command(words: string, act: (model: MoneyModel, real: RealOut) => Promise<void>): OutCommand {
  return {
    check: () => true,
    async run(model, real) {
      real.environment.operator.log.length = 0
      await act(model, real)
      real.environment.operator.treatment = 'normal'
      expect(real.environment.operator.failures.splice(0)).toEqual([])
      await compare(model, real)
    },
    toString: () => words,
  }
}

/** Applies the exchanges since the command began to the model, in their order. */
export async function applyAnswer(model: MoneyModel, real: RealOut): Promise<void> {
  for (const exchange of real.environment.operator.log) {
    const { correlationId } = exchange
    const item = real.names.get(correlationId) ?? (await findByNewName(model, real, correlationId))
    const wrong = 'kind' in item ? model.applyAnswerOut(item, exchange) : model.applyAnswer(item, exchange)
    expect(wrong).toBe(null)
  }
}

/** Finds the item of the model that has this new name at the operator. */
async function findByNewName(model: MoneyModel, real: RealOut, correlationId: string): Promise<ModelItem> {
  const row = (await readItems(real)).find((each) => each.name === correlationId)
  const item = [...model.payments, ...model.outs].find((each) => row && find([row], each))
  if (!item) throw new Error('the operator was asked about a payment that no command began')
  real.names.set(correlationId, item)
  return item
}

export async function idOf(real: RealOut, item: ModelItem): Promise<bigint> {
  const row = find(await readItems(real), item)
  if (!row) throw new Error('the item is not in the database')
  return BigInt(row.id)
}

/** Calls a verb as a merchant. @returns the status, or the code of the refusal */
export async function call(
  real: RealOut,
  at: number,
  how: Treatment,
  verb: (ctx: Context) => Promise<{ status: string }>,
): Promise<string> {
  const merchant = real.merchants[at]
  if (!merchant) throw new Error('no such merchant')
  real.environment.operator.treatment = how
  try {
    const ctx = contextOf(real.services, merchant)
    return (await asMerchant(merchant.merchantId, () => verb(ctx))).status
  } catch (error) {
    if (error instanceof DomainError) return error.code
    throw error
  }
}

export function paymentOf({ amount: sum, reference }: { amount: bigint; reference: string }) {
  return {
    amount: sum,
    customerPhone: '70000001',
    paymentMethod: 'OperatorA',
    reference,
  } as const
}

export function listed(input: object): string {
  return Object.values(input).join(', ')
}
