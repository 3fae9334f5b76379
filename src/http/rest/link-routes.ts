import { createLinkInput } from '../../resources/payment-links/create.ts'
import { linkFilterInput } from '../../resources/payment-links/list.ts'
import { updateLinkInput } from '../../resources/payment-links/update.ts'
import { bareList, body, changeBody, idOf, pageOptions, type RestRoute } from './route.ts'

export const linkRoutes: readonly RestRoute[] = [
  {
    method: 'POST',
    path: '/payment-links',
    status: 201,
    operation: 'CreatePaymentLink',
    variables: (request) => ({ input: body(request, createLinkInput) }),
    location: ({ id }: { id: number }) => `/payment-links/${id}`,
  },
  {
    method: 'GET',
    path: '/payment-links',
    status: 200,
    operation: 'PaymentLinks',
    variables: (request) => pageOptions(request, linkFilterInput),
    ...bareList,
  },
  {
    method: 'GET',
    path: '/payment-links/{id}',
    status: 200,
    operation: 'PaymentLink',
    variables: idOf,
  },
  {
    method: 'PUT',
    path: '/payment-links/{id}',
    status: 200,
    operation: 'UpdatePaymentLink',
    variables: (request) => ({
      ...idOf(request),
      input: changeBody(request, updateLinkInput, ['description', 'amount', 'usageLimit', 'expiresAt']),
    }),
    data: () => undefined,
  },
]
