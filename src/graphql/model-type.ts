import { getRefFromModel, type PrismaModelTypes, type PrismaObjectRef } from '@pothos/plugin-prisma'
import { builder } from './builder.ts'

type ModelType = PrismaObjectRef<typeof builder.$inferSchemaTypes, PrismaModelTypes, object>

/** Returns the GraphQL type of a model, which another resource defines. */
export function modelType(
  model: 'Batch' | 'BatchRecipient' | 'Payout' | 'SettingsChange' | 'Transaction',
): ModelType {
  return getRefFromModel(model, builder) as ModelType
}
