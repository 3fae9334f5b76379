import { z } from 'zod'
import type { Services } from '../context.ts'
import { verifyLedger } from '../ledger/verify.ts'
import { createMerchant } from '../resources/merchants/create.ts'
import { deactivateMerchant } from '../resources/merchants/deactivate.ts'
import { fundMerchant } from '../resources/merchants/fund.ts'
import { formatXof } from '../shared/money.ts'
import { readInput, wholeNumber } from '../shared/input.ts'
import { DomainError } from '../shared/errors.ts'

/** What an administration command needs of the services. */
export type AdminServices = Pick<Services, 'config' | 'database' | 'access'>

/** The flags of the command line. */
interface Flags {
  name?: string | undefined
  id?: string | undefined
  amount?: string | undefined
}

interface Done {
  /** For programs (`--json`). */
  answer: object
  /** For people. */
  words: string
  failed?: boolean
}

/** Every command of `npm run admin`. */
export const commands: Readonly<Record<string, (services: AdminServices, flags: Flags) => Promise<Done>>> = {
  'merchant create': async (services, { name = '' }) => {
    const made = await createMerchant(services, { name })
    const secret = made.apiSecret.reveal()
    return {
      answer: { merchant_id: made.merchantId, api_key: made.apiKey, api_secret: secret },
      words: [
        `Merchant ${made.merchantId}`,
        `  API key     ${made.apiKey}`,
        `  API secret  ${secret}   (shown this once)`,
      ].join('\n'),
    }
  },
  'merchant fund': async (services, { id, amount }) => {
    if (services.config.mode !== 'sandbox')
      throw new DomainError('NOT_FOUND', 'Only a sandbox can be funded.')
    const merchantId = readInput(merchantIdInput, { id }).id
    const { available } = await fundMerchant(services, merchantId, { amount: Number(amount ?? 'missing') })
    return {
      answer: { merchant_id: merchantId, available: Number(available) },
      words: `Merchant ${merchantId} now has ${formatXof(available, 'en')} available.`,
    }
  },
  'merchant deactivate': async (services, { id }) => {
    const merchantId = readInput(merchantIdInput, { id }).id
    await deactivateMerchant(services, merchantId)
    return {
      answer: { merchant_id: merchantId, status: 'inactive' },
      words: `Merchant ${merchantId} is inactive.`,
    }
  },
  'ledger verify': async (services) => {
    const problems = await verifyLedger(services.database.pool)
    const words = problems.map(({ merchantId, problem }) => `merchant ${merchantId}: ${problem}`)
    return {
      answer: { holds: problems.length === 0, problems },
      words:
        problems.length === 0 ? 'The ledger holds: every balance equals its movements.' : words.join('\n'),
      failed: problems.length > 0,
    }
  },
}

const merchantIdInput = z.object({ id: wholeNumber(1, 2_147_483_647) })
