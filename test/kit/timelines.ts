import { expect } from 'vitest'
import type { TestMerchant } from './app.ts'
import { eventually } from './eventually.ts'
import type { Fixture } from './fixture.ts'

// Timelines of transactions, read as a client reads them, and what the simulator saw of the same payments.

export interface EntryShown {
  at: string
  kind: string
  source: string
  status: string | null
  failureReason: string | null
  statusCode: number | null
  durationMs: number | null
  eventType: string | null
  refundId: number | null
}

export const timelineDocument = `query ($id: SafeInt!) { transaction(databaseId: $id) { timeline {
  at kind source status failureReason statusCode durationMs eventType refundId } } }`

/** An entry as one line: its kind, its source, and the status if it has one. */
export const short = ({ kind, source, status }: EntryShown) =>
  [kind, source, ...(status === null ? [] : [status])].join(' ')
/** A story without the questions and callbacks of its operator: their number is the operator's own. */
export const withoutAnswers = (story: string[]) =>
  story.filter((line) => !/^OPERATOR_(QUES|CALLED)/.test(line))
export const only = (entries: EntryShown[], kind: string) => entries.filter((entry) => entry.kind === kind)

/** Readers of timelines. */
export function timelinesOn(fixture: Fixture) {
  /** Reads a timeline, whose entries must be in the order of their times. */
  async function timeline(id: unknown, { token }: { token: string }): Promise<EntryShown[]> {
    const { body } = await fixture.graphql(timelineDocument, { id }, token)
    expect(body.errors).toBeUndefined()
    const entries = body.data.transaction.timeline as EntryShown[]
    expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).toSorted())
    return entries
  }

  /** Reads the timeline once the payment has a status, and all callbacks and requests to pay are in it. */
  async function settled(id: unknown, status: string, merchant: TestMerchant) {
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe(status))
    const prompts = (await fixture.seen(await fixture.correlationOf(id))).filter(
      ({ method }) => method === 'POST',
    )
    return eventually(async () => {
      const entries = await timeline(id, merchant)
      const answers = entries.filter(({ kind }) => /^OPERATOR_(ANSWERED|DID_NOT)/.test(kind))
      expect(answers.map(({ statusCode }) => statusCode)).toEqual(prompts.map((prompt) => prompt.status))
      expect(only(entries, 'OPERATOR_ASKED')).toHaveLength(prompts.length)
      expect(only(entries, 'OPERATOR_CALLED_BACK')).toHaveLength(await fixture.callbacksOf(id))
      expect(only(entries, 'OPERATOR_QUESTIONED').length > 0 || answers[0]?.statusCode === 200).toBe(true)
      return { entries, prompts, story: entries.map(short) }
    })
  }

  /** The answers to the questions about a payment, as the operator saw them: by each name of the request. */
  async function questionsOf(id: unknown, merchant: TestMerchant) {
    const { rows } = await fixture.database.owner.query<{ handle: Record<string, string>; name: string }>(
      `SELECT handle, correlation_id AS name FROM operator_request WHERE transaction_id = $1`,
      [id],
    )
    const reference = (await fixture.record(merchant, id))['response_data'].operator_reference
    const names = [rows[0]?.name, rows[0]?.handle['serverCorrelationId'], reference].filter(
      (name) => name != null,
    )
    const all = await fixture.seen('')
    return all
      .filter((call) => call.method === 'GET' && names.some((name) => JSON.stringify(call).includes(name)))
      .toSorted((one, other) => (one.at < other.at ? -1 : 1))
      .map(({ status }) => status)
  }
  return { timeline, settled, questionsOf }
}
