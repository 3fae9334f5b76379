import type { GraphQLSchema } from 'graphql'
import { mine } from '../identity/callers/actor.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { accessRuleOf } from '../graphql/access-plan.ts'
import { qrOfLink } from '../resources/payment-links/qr.ts'
import { readSmallId } from '../shared/ids.ts'
import { type Download, downloadRow } from './downloads.ts'
import type { RouteRow } from './request.ts'

/** Makes the rows of the path table for the QR codes of payment links, as files. */
export function linkCodeRows(schema: GraphQLSchema): RouteRow[] {
  const rule = accessRuleOf(schema, 'PaymentLink')
  const rowOf = (extension: 'svg' | 'png', contentType: string) => {
    const file: Download = {
      fileName: `qr.${extension}`,
      contentType,
      route: 'QR code of a payment link',
      rule,
      send: async (caller, { response, begin, params: { id = '' } }) => {
        const { merchantId } = mine(caller)
        const linkId = readSmallId('PaymentLink', id)
        const code = await asMerchant(merchantId, () => qrOfLink(caller, linkId))
        if (begin()) response.end(code[extension])
      },
    }
    return downloadRow(`/payment-links/{id}/qr.${extension}`, file, '\\w{1,64}')
  }
  return [rowOf('svg', 'image/svg+xml'), rowOf('png', 'image/png')]
}
