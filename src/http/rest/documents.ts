import { type DocumentNode, Kind, parse, type SelectionSetNode } from 'graphql'
import { snakeCase } from '../../shared/input.ts'

/**
 * Returns the document with the operations of all REST routes. The answers have fields under REST names:
 * `customerPhone` becomes `customer_phone`, and `databaseId` becomes `id`. A field with any other name states
 * it as an alias.
 */
export function restDocument(): DocumentNode {
  const { definitions, ...document } = parse(operations)
  return {
    ...document,
    definitions: definitions.map((definition) => {
      if (definition.kind === Kind.FRAGMENT_DEFINITION)
        return { ...definition, selectionSet: renamed(definition.selectionSet) }
      if (definition.kind !== Kind.OPERATION_DEFINITION) return definition
      // The root field itself is not a part of the answer.
      const selections = definition.selectionSet.selections.map((root) =>
        root.kind === Kind.FIELD && root.selectionSet
          ? { ...root, selectionSet: renamed(root.selectionSet) }
          : root,
      )
      return { ...definition, selectionSet: { ...definition.selectionSet, selections } }
    }),
  }
}

function renamed({ selections, ...set }: SelectionSetNode): SelectionSetNode {
  return {
    ...set,
    selections: selections.map((selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD) return selection
      const { selectionSet } = selection
      const inner = { ...selection, ...(selectionSet && { selectionSet: renamed(selectionSet) }) }
      if (inner.kind === Kind.INLINE_FRAGMENT || inner.alias) return inner
      const { value } = inner.name
      const name = restName(value)
      return name === value ? inner : { ...inner, alias: { kind: Kind.NAME, value: name } }
    }),
  }
}

/**
 * The fields that the envelope and the routes read. They keep their names: no answer contains them directly.
 */
const ownNames: ReadonlySet<string> = new Set([
  '__typename',
  'totalCount',
  'dryRun',
  'retryAfter',
  'requiredScopes',
  'existingTransaction',
  'existingPayout',
])

function restName(field: string): string {
  if (ownNames.has(field)) return field
  return field === 'databaseId' ? 'id' : snakeCase(field)
}

const operations = `
mutation Authenticate($input: AuthenticateInput!) {
  authenticate(input: $input) {
    __typename
    ... on AccessToken {
      token tokenType expiresIn expiresAt scopes
      limits { maxPerPayment maxPerDay paymentMethods addresses }
    }
    ...Refused
  }
}
query ServiceStatus {
  serviceStatus {
    status version environment time
    components { database jobs paymentsOut paymentsOutReason }
    ledger { status provenAt ageSeconds }
    operators { paymentMethod collect disburse }
  }
}
query PaymentStatus($reference: String!, $merchantId: Int) {
  paymentStatus(reference: $reference, merchantId: $merchantId) { message state status: complete }
}
mutation CollectPayment($input: CollectPaymentInput!) {
  collectPayment(input: $input) {
    __typename ...Initiation ...Refused
    ... on PaymentRefusedError { initiation { ...Initiation } }
  }
}
mutation Deposit($input: DepositInput!) {
  deposit(input: $input) {
    __typename ...Initiation ...Refused
    ... on PaymentRefusedError { initiation { ...Initiation } }
  }
}
query Balance($paymentMethod: PaymentMethod) {
  balance(paymentMethod: $paymentMethod) {
    currency balance available reserved receivable asOf operatorBalance
  }
}
query Transactions($limit: Int!, $offset: Int!, $filter: TransactionFilter, $orderBy: ListOrder) {
  transactions(first: $limit, offset: $offset, filter: $filter, orderBy: $orderBy) {
    totalCount nodes { ...TransactionRecord }
  }
}
query Transaction($id: ID!) {
  transaction(by: { id: $id }) { ...TransactionRecord approval { status expiresAt } }
}
mutation CreatePayout($input: CreatePayoutInput!) {
  createPayout(input: $input) { __typename ...PayoutRecord ...Refused }
}
query Payouts($limit: Int!, $offset: Int!, $filter: PayoutFilter, $orderBy: ListOrder) {
  payouts(first: $limit, offset: $offset, filter: $filter, orderBy: $orderBy) {
    totalCount nodes { ...PayoutRecord }
  }
}
query Payout($id: ID!) { payout(by: { id: $id }) { ...PayoutRecord } }
mutation CreateBatch($input: CreateBatchInput!, $dryRun: Boolean) {
  createBatch(input: $input, dryRun: $dryRun) {
    __typename
    ... on BatchPayload {
      batch { ...BatchRecord }
      dryRun { ...Forecast }
      warnings { field message }
    }
    ...Refused
  }
}
query Batch($id: ID!) { batch(id: $id) { ...BatchRecord } }
query BatchRecipients($id: ID!, $limit: Int!, $offset: Int!, $filter: RecipientFilter) {
  batch(id: $id) {
    recipients(first: $limit, offset: $offset, filter: $filter) {
    totalCount nodes { ...RecipientRecord }
  }
  }
}
mutation AddRecipients($id: ID!, $recipients: [RecipientInput!]!) {
  addRecipients(id: $id, recipients: $recipients) {
    __typename
    ... on BatchPayload { batch { ...BatchRecord } warnings { field message } }
    ...Refused
  }
}
mutation ProcessBatch($id: ID!, $dryRun: Boolean, $expectedTotal: Amount) {
  processBatch(id: $id, dryRun: $dryRun, expectedTotal: $expectedTotal) {
    __typename
    ... on BatchPayload { batch { ...BatchRecord } dryRun { ...Forecast } }
    ...Refused
  }
}
mutation CancelBatch($id: ID!) { cancelBatch(id: $id) { __typename ...Refused } }
mutation CreatePaymentLink($input: CreatePaymentLinkInput!) {
  createPaymentLink(input: $input) { __typename ...PaymentLinkRecord ...Refused }
}
query PaymentLinks($limit: Int!, $offset: Int!, $filter: PaymentLinkFilter) {
  paymentLinks(first: $limit, offset: $offset, filter: $filter) {
    totalCount nodes { ...PaymentLinkRecord }
  }
}
query PaymentLink($id: ID!) { paymentLink(id: $id) { ...PaymentLinkRecord } }
mutation UpdatePaymentLink($id: ID!, $input: UpdatePaymentLinkInput!) {
  updatePaymentLink(id: $id, input: $input) { __typename ...Refused }
}
mutation CreateBeneficiary($input: CreateBeneficiaryInput!) {
  createBeneficiary(input: $input) { __typename ...BeneficiaryRecord ...Refused }
}
query Beneficiaries($limit: Int!, $offset: Int!, $filter: BeneficiaryFilter) {
  beneficiaries(first: $limit, offset: $offset, filter: $filter) {
    totalCount nodes { ...BeneficiaryRecord }
  }
}
query Beneficiary($id: ID!) { beneficiary(id: $id) { ...BeneficiaryRecord } }
mutation UpdateBeneficiary($id: ID!, $input: UpdateBeneficiaryInput!) {
  updateBeneficiary(id: $id, input: $input) { __typename ...Refused }
}
mutation RegisterWebhook($input: RegisterWebhookInput!) {
  registerWebhook(input: $input) {
    __typename
    ... on WebhookSecret { secret webhook { ...WebhookRecord } }
    ...Refused
  }
}
query Webhooks($limit: Int!, $offset: Int!) {
  webhooks(first: $limit, offset: $offset) { totalCount nodes { ...WebhookRecord } }
}
query Webhook($id: ID!) { webhook(id: $id) { ...WebhookRecord } }
mutation UpdateWebhook($id: ID!, $input: UpdateWebhookInput!) {
  updateWebhook(id: $id, input: $input) { __typename ...WebhookRecord ...Refused }
}
mutation RemoveWebhook($id: ID!) { removeWebhook(id: $id) { __typename ...Refused } }
mutation SendTestEvent($id: ID!) {
  sendTestEvent(id: $id) {
    __typename
    ... on SampleDelivery { delivered statusCode durationMs }
    ...Refused
  }
}
mutation InviteMember($input: InviteMemberInput!) {
  inviteMember(input: $input) { __typename ... on TeamMember { databaseId } ...Refused }
}
query Members($limit: Int!, $offset: Int!) {
  members(first: $limit, offset: $offset) { totalCount nodes { ...MemberRecord } }
}
query Member($id: ID!) { member(id: $id) { ...MemberRecord } }
mutation ChangeMemberRole($id: ID!, $role: MemberRole!) {
  changeMemberRole(id: $id, role: $role) { __typename ...Refused }
}
mutation RemoveMember($id: ID!, $keepKeys: [ID!]) {
  removeMember(id: $id, keepKeys: $keepKeys) { __typename ...Refused }
}
query Settings { settings { ...SettingsRecord } }
mutation UpdateSettings($input: UpdateSettingsInput!) {
  updateSettings(input: $input) { __typename ...SettingsRecord ...Refused }
}
fragment Initiation on PaymentInitiation {
  transaction_id: databaseId reference amount currency paymentMethod status paymentUrl initiatedAt
}
fragment TransactionRecord on Transaction {
  databaseId transactionType paymentMethod customerPhone amount currency status reference
  requestData responseData createdAt
}
fragment PayoutRecord on Payout {
  databaseId amount currency paymentMethod destinationPhone status reference scheduledAt
  approval { status expiresAt }
  beneficiaryId failureReason
  failure { reason who again messageFr messageEn }
  settledAt reversedAt createdAt
}
fragment BatchRecord on Batch {
  databaseId status title recipientCount totalAmount currency
  approval { status expiresAt }
  succeededCount failedCount cancelledCount paidAmount createdAt processedAt
}
fragment Forecast on BatchForecast {
  recipientCount totalAmount currency fees availableNow availableAfter approvalRequired
  operators { paymentMethod recipientCount totalAmount }
  duplicates { account recipientCount totalAmount }
  unknownNumbers numbersChecked operatorsWithoutLookup operatorsDown
}
fragment RecipientRecord on BatchRecipient {
  databaseId name account amount paymentMethod status failureReason settledAmount settledAt
  reversedAt
}
fragment PaymentLinkRecord on PaymentLink {
  databaseId title description amount currency urlSlug url usageLimit usageCount availability
  isActive expiresAt createdAt
}
fragment BeneficiaryRecord on Beneficiary {
  databaseId name account paymentMethod category isActive createdAt
}
fragment WebhookRecord on Webhook {
  databaseId url events isActive failureCount disabledAt lastSuccessAt lastFailureAt createdAt
}
fragment MemberRecord on TeamMember { databaseId name email role status createdAt }
fragment SettingsRecord on Settings {
  businessName notificationEmail payoutsRequireApproval approvalThreshold approvalsRequired
  approvalsCoverDeposits approvalGaps ipWhitelist locale timeZone businessPhone businessAddress
  pendingChange {
    databaseId payoutsRequireApproval approvalThreshold approvalsRequired approvalsCoverDeposits
    team_member_id: memberId
    approval { required expiresAt digest }
    createdAt
  }
}
fragment Refused on Refusal {
  code message retryAfter
  ... on InvalidInputError { problems { field message } }
  ... on ForbiddenError { requiredScopes }
  ... on LimitExceededError { limit }
  ... on DuplicateReferenceError { existingTransaction { databaseId status } }
  ... on DuplicatePayoutError { existingPayout { databaseId status } }
}
`
