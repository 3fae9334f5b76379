import { ask, type WorkloadClient, describe, isTrouble, type WorkloadOperation } from './workload.ts'

/** The operations of payers with payment links, by weight. */
export const byLink: readonly WorkloadOperation[] = [
  { name: 'many pay by a link with one place', weight: 5, run: fillLink },
]

const payersCount = 8
const formMs = 15_000

/** Makes a link for one payer, and several payers send its form at once. */
async function fillLink(client: WorkloadClient): Promise<void> {
  const link = { title: 'Dernière place', amount: 1_000, usage_limit: 1 }
  const made = await ask(client, 'POST', '/payment-links', link)
  if (!made || isTrouble(made)) return
  const slug: unknown = made.body.data?.url_slug
  if (made.status !== 201 || typeof slug !== 'string')
    return void client.record.complaints.push(describe('POST /payment-links', made))
  await Promise.all(Array.from({ length: payersCount }, () => sendForm(client, `${client.url}/l/${slug}`)))
}

/**
 * Sends the form of a link. The answer does not matter: the harness counts the link's attempts in the
 * database.
 */
async function sendForm({ random, record }: WorkloadClient, url: string): Promise<void> {
  record.requests += 1
  const suffix = String(Math.floor(random() * 100)).padStart(2, '0')
  // The payer pays at once, or soon.
  const phone = `70${random() < 0.5 ? '0000' : '0001'}${suffix}`
  const body = new URLSearchParams({ amount: '1000', phone })
  const init = { method: 'POST', body, redirect: 'manual', signal: AbortSignal.timeout(formMs) } as const
  const answer = await fetch(url, init).catch(() => null)
  await answer?.text().catch(() => '')
  if (answer) record.answered += 1
  const name = answer ? String(answer.status) : 'lost'
  record.answers.set(name, (record.answers.get(name) ?? 0) + 1)
}
