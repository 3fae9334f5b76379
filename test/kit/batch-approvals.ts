import { expect } from 'vitest'
import type { TestMerchant } from './app.ts'
import { type ApprovalAnswer, approvalsOn, type Waits } from './approvals.ts'
import { bulkOn, row, type BatchRow } from './bulk.ts'
import type { Fixture } from './fixture.ts'

const approvalFields = `approval { status required digest expiresAt reason canApprove
  approvedBy { member { databaseId } role counts } rejectedBy { member { databaseId } } }`
const decided = `{ __typename ... on Batch { databaseId status ${approvalFields} }
  ... on Refusal { code message } ... on InvalidInputError { problems { field } } }`
const approving = `mutation ($id: ID!, $digest: String!) {
  approveBatch(id: $id, digest: $digest) ${decided} }`
const rejecting = `mutation ($id: ID!, $reason: String!) {
  rejectBatch(id: $id, reason: $reason) ${decided} }`

type Token = Pick<TestMerchant, 'token'>

/** Actions and checks of the tests of batch approvals. */
export function batchApprovalsOn(fixture: Fixture) {
  const { ask, team } = approvalsOn(fixture)
  const { draft, process } = bulkOn(fixture)
  const { owner } = fixture.database

  async function approvalOf({ token }: Token, id: number): Promise<ApprovalAnswer> {
    const document = `query ($id: ID!) { batch(id: $id) { ${approvalFields} } }`
    return (await ask(token, document, { id: String(id) }))['approval'] as ApprovalAnswer
  }

  /** Processes a draft, which then waits for approval. */
  async function send(maker: Token, id: number): Promise<Waits> {
    const { status, body } = await process(maker as TestMerchant, id)
    expect({ status, data: body['data'] }).toMatchObject({
      status: 202,
      data: { status: 'pending_approval', approval: 'pending' },
    })
    return { id, digest: String((await approvalOf(maker, id))['digest']) }
  }

  return {
    ask,
    team,
    approvalOf,
    send,
    /** Makes a batch that waits, with one recipient that is paid at once where none is given. */
    waiting: async (maker: Token, recipients: readonly BatchRow[] = [row()]): Promise<Waits> =>
      send(maker, await draft(maker as TestMerchant, recipients)),
    approve: ({ token }: Token, { id, digest }: Waits, url?: string) =>
      ask(token, approving, { id: String(id), digest }, url),
    reject: ({ token }: Token, { id }: Pick<Waits, 'id'>, reason = 'not ours', url?: string) =>
      ask(token, rejecting, { id: String(id), reason }, url),
    /** Reads how often operators were asked for its recipients, and its ledger steps. */
    paidOut: async ({ id }: Pick<Waits, 'id'>): Promise<{ requests: number; steps: string[] }> => {
      const { rows } = await owner.query<{ requests: number; steps: string[] }>(
        `WITH paid AS (SELECT id FROM batch_recipient WHERE batch_id = $1)
         SELECT
           (SELECT count(*)::int FROM operator_request
             WHERE recipient_id IN (SELECT id FROM paid)) AS requests,
           ARRAY(SELECT step::text FROM ledger_entry WHERE origin = 'batch:' || $1
             OR origin IN (SELECT 'recipient:' || id FROM paid) ORDER BY id) AS steps`,
        [id],
      )
      return rows[0] ?? { requests: -1, steps: [] }
    },
    verdictsOf: async ({ id }: Pick<Waits, 'id'>): Promise<string[]> => {
      const { rows } = await owner.query<{ line: string }>(
        `SELECT member_id || ' ' || verdict AS line FROM approval_verdict WHERE batch_id = $1 ORDER BY id`,
        [id],
      )
      return rows.map(({ line }) => line)
    },
  }
}
