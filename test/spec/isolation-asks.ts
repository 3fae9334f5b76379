// What a stranger knows of a merchant, and how it tries with it: the words of the isolation matrix.

/** Everything that names a merchant or its things. */
export interface Known {
  apiKey: string
  apiSecret: string
  merchantId: number
  /** REST id of one of its payments. */
  id: string
  /** Global id of the same. */
  node: string
  cursor: string
  reference: string
  phone: string
  /** Place in its log. */
  sequence: string
  /** An `Idempotency-Key` that it used, and the body that came with it. */
  idempotencyKey: string
  body: Record<string, unknown>
  /** Cursor of a line of its statement. */
  line: string
  /** REST id of one of its beneficiaries. */
  beneficiaryId: string
  /** Global id of the same. */
  beneficiaryNode: string
  beneficiaryCursor: string
  /** Name of the same. */
  beneficiary: string
  /** REST id of one of its payouts, to that beneficiary. */
  payoutId: string
  /** Global id of the same. */
  payoutNode: string
  payoutCursor: string
  payoutReference: string
}

export interface Ask {
  /** Below `/merchant/api`, or a GraphQL document. */
  method?: string
  path?: string
  body?: object
  headers?: Record<string, string>
  document?: string
  variables?: object
  /** A live stream: what comes within a moment. */
  isStream?: true
}

/** @param other what is named: something of another merchant, or nothing. @param own the caller's own */
export type Attack = (other: Known, own: Known) => Ask

export interface Row {
  /** Why naming something here tells nothing: then there is no attack. */
  harmless?: string
  attack?: Attack
  /** Knowing the name is the right to ask: whoever it is hears the same. */
  isCredential?: true
  /** It makes something of the caller's own. */
  isWrite?: true
}

export const graphql =
  (document: string, variables: (other: Known, own: Known) => object): Attack =>
  (other, own) => ({ document, variables: variables(other, own) })

export const get =
  (path: (other: Known, own: Known) => string): Attack =>
  (other, own) => ({ method: 'GET', path: path(other, own) })
