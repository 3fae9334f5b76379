import { Pool as HttpPool } from 'undici'

/** Pays out by OperatorD. @returns its number for the money, which it gives at once */
export type Send = (correlationId: string, amount: number, phone: string) => Promise<string>

/** Calls OperatorD of the simulator as a careless client does: it signs in once and ignores all failures. */
export async function openOperator(operatorsUrl: string): Promise<Send> {
  const operator = new HttpPool(operatorsUrl, { connections: 64 })
  const signedIn = await operator.request({
    method: 'POST',
    path: '/op-d/oauth/token',
    headers: {
      authorization: `Basic ${btoa('sandbox-d:sandbox-secret-d')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
  })
  const { access_token: token } = (await signedIn.body.json()) as { access_token: string }
  return async (correlationId, amount, phone) => {
    const heard = await operator.request({
      method: 'POST',
      path: '/op-d/v1.1/mm/transactions/type/disbursement',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'x-api-key': 'sandbox-key-d',
        'x-correlationid': correlationId,
      },
      body: JSON.stringify({
        amount: String(amount),
        currency: 'XOF',
        requestingOrganisationTransactionReference: correlationId,
        debitParty: [{ key: 'accountid', value: 'POOL' }],
        creditParty: [{ key: 'msisdn', value: phone }],
      }),
    })
    const told = (await heard.body.json()) as { transactionStatus?: string; transactionReference: string }
    if (told.transactionStatus !== 'completed') throw new Error(`The operator said ${JSON.stringify(told)}`)
    return told.transactionReference
  }
}
