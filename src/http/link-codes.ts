import type { GraphQLSchema } from 'graphql'
import { mine } from '../identity/actor.ts'
import type { Services } from '../context.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { accessRuleOf } from '../graphql/access-plan.ts'
import { qrOfLink } from '../resources/payment-links/qr.ts'
import { readSmallId } from '../shared/ids.ts'
import { openDownloads } from './downloads.ts'
import type { Door } from './rest/handler.ts'

/** The QR codes of payment links, as files. */
export function openLinkCodes(services: Services, schema: GraphQLSchema): Door {
  const rule = accessRuleOf(schema, 'PaymentLink')
  return openDownloads(services, (path) => {
    const [, id, extension] = /^\/payment-links\/(\w{1,64})\/qr\.(svg|png)$/.exec(path) ?? []
    if (id === undefined) return null
    return {
      fileName: `qr.${extension}`,
      contentType: extension === 'svg' ? 'image/svg+xml' : 'image/png',
      route: 'QR code of a payment link',
      rule,
      send: async (caller, { response, begin }) => {
        const { merchantId } = mine(caller)
        const { svg, png } = await asMerchant(merchantId, () =>
          qrOfLink(caller, readSmallId('PaymentLink', id)),
        )
        if (begin()) response.end(extension === 'svg' ? svg : png)
      },
    }
  })
}
