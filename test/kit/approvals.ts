import { createClient } from 'graphql-ws'
import { expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Role } from '../../src/identity/members/roles.ts'
import { nameHolder, makeMember, type TestMember } from './members.ts'
import type { TestMerchant } from './app.ts'
import { eventually } from './eventually.ts'
import { payoutsOn } from './payouts.ts'
import type { Fixture } from './fixture.ts'

const approvalFields = `approval { status required digest expiresAt reason canApprove
  approvedBy { member { databaseId name } role at counts } rejectedBy { member { databaseId } role } }`
const decided = `{ __typename ... on Payout { databaseId status ${approvalFields} }
  ... on Refusal { code message } ... on InvalidInputError { problems { field } } }`
const approving = `mutation ($id: ID!, $digest: String!) {
  approvePayout(id: $id, digest: $digest) ${decided} }`
const rejecting = `mutation ($id: ID!, $reason: String!) {
  rejectPayout(id: $id, reason: $reason) ${decided} }`

export type ApprovalAnswer = Record<string, unknown>

/** A payout that waits for approval. */
export interface Waits {
  id: number
  digest: string
}

interface Team {
  merchant: TestMerchant
  person: (role?: Role) => Promise<TestMember>
}

type Token = Pick<TestMerchant, 'token'>

/** The requests and ledger steps of a payment that was sent, and of one that was not. */
export const sentOnce = { requests: 1, steps: ['reserve', 'post'] }
export const released = { requests: 0, steps: ['reserve', 'void'] }

/** Actions and checks of the tests of approvals. */
export function approvalsOn(fixture: Fixture) {
  const { shop, payOut, record } = payoutsOn(fixture)
  const { owner } = fixture.database

  /** @param url the service that is asked */
  async function ask(
    token: string,
    document: string,
    variables: object = {},
    url = fixture.url,
  ): Promise<ApprovalAnswer> {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: document, variables }),
    })
    const { data, errors } = (await response.json()) as {
      data?: Record<string, ApprovalAnswer>
      errors?: { extensions: { code: string } }[]
    }
    const [refused] = errors ?? []
    return refused ? { code: refused.extensions.code } : (Object.values(data ?? {})[0] ?? {})
  }

  async function approvalOf(token: string, id: number): Promise<ApprovalAnswer> {
    const found = await ask(token, `query ($id: ID) { payout(id: $id) { ${approvalFields} } }`, {
      id: String(id),
    })
    return found['approval'] as ApprovalAnswer
  }

  return {
    ask,
    approvalOf,
    /** Makes a merchant; its payouts wait for so many approvals. */
    team: async (required = 1): Promise<Team> => {
      const merchant = await shop(100_000, { threshold: 2_000 })
      await owner.query('UPDATE merchant SET approvals_required = $2 WHERE id = $1', [
        merchant.merchantId,
        required,
      ])
      const { access } = fixture.app.services
      await nameHolder(owner, access, merchant.merchantId)
      return { merchant, person: (role = 'finance') => makeMember(access, merchant.merchantId, role) }
    },
    /** Makes a payout that waits, to a number that pays at once. */
    waiting: async (maker: Token, body: object = {}): Promise<Waits> => {
      const { status, body: answer } = await payOut(maker as TestMerchant, body)
      expect({ status, approval: answer['data']?.approval }).toEqual({ status: 201, approval: 'pending' })
      const { id } = answer['data'] as { id: number }
      return { id, digest: String((await approvalOf(maker.token, id))['digest']) }
    },
    approve: ({ token }: Token, { id, digest }: Waits, url?: string) =>
      ask(token, approving, { id: String(id), digest }, url),
    reject: ({ token }: Token, { id }: Pick<Waits, 'id'>, reason = 'not ours', url?: string) =>
      ask(token, rejecting, { id: String(id), reason }, url),
    becomes: (merchant: TestMerchant, { id }: Waits, what: object) =>
      eventually(async () => expect(await record(merchant, id)).toMatchObject(what)),
    /** Reads how often the operator was asked for the payout, and its ledger steps. */
    paidOut: async ({ id }: Waits): Promise<{ requests: number; steps: string[] }> => {
      const { rows } = await owner.query<{ requests: number; steps: string[] }>(
        `SELECT (SELECT count(*)::int FROM operator_request WHERE payout_id = $1) AS requests,
           ARRAY(SELECT step::text FROM ledger_entry WHERE origin = 'payout:' || $1 ORDER BY id) AS steps`,
        [id],
      )
      return rows[0] ?? { requests: -1, steps: [] }
    },
    verdictsOf: async ({ id }: Waits): Promise<string[]> => {
      const { rows } = await owner.query<{ line: string }>(
        `SELECT member_id || ' ' || verdict AS line FROM approval_verdict WHERE payout_id = $1 ORDER BY id`,
        [id],
      )
      return rows.map(({ line }) => line)
    },
  }
}

/** The changes of approvals that a client of WebSockets receives, one by one, until the test ends. */
export async function* approvalChanges(
  { url }: Pick<Fixture, 'url'>,
  token: string,
  query: string,
): AsyncGenerator<ApprovalAnswer, void> {
  const client = createClient({
    url: `${url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
  })
  onTestFinished(() => void client.dispose())
  for await (const { data, errors } of client.iterate({ query })) {
    expect(errors).toBeUndefined()
    yield (data ?? {})['approvalsChanged'] as ApprovalAnswer
  }
}
