import { ask, type WorkloadClient, describe, isTrouble, type WorkloadOperation } from './workload.ts'

/** What payers do with payment links, by weight. */
export const byLink: readonly WorkloadOperation[] = [
  { name: 'many pay by a link with one place', weight: 5, run: fillLink },
]

const payersCount = 8
const formMs = 15_000

/** Makes a link that one payer may use, and several send its form at once. */
async function fillLink(client: WorkloadClient): Promise<void> {
  const link = { title: 'Dernière place', amount: 1_000, usage_limit: 1 }
  const made = await ask(client, 'POST', '/payment-links', link)
  if (!made || isTrouble(made)) return
  const slug: unknown = made.body.data?.url_slug
  if (made.status !== 201 || typeof slug !== 'string')
    return void client.record.strange.push(describe('POST /payment-links', made))
  await Promise.all(Array.from({ length: payersCount }, () => sendForm(client, `${client.url}/l/${slug}`)))
}

/** What it led to stands in the database: the harness counts the attempts of a link there. */
async function sendForm({ random, record }: WorkloadClient, url: string): Promise<void> {
  record.requests += 1
  const somebody = String(Math.floor(random() * 100)).padStart(2, '0')
  // Pays at once, or soon.
  const phone = `70${random() < 0.5 ? '0000' : '0001'}${somebody}`
  const body = new URLSearchParams({ amount: '1000', phone })
  const init = { method: 'POST', body, redirect: 'manual', signal: AbortSignal.timeout(formMs) } as const
  const answer = await fetch(url, init).catch(() => null)
  await answer?.text().catch(() => '')
  if (answer) record.answered += 1
  const name = answer ? String(answer.status) : 'lost'
  record.answers.set(name, (record.answers.get(name) ?? 0) + 1)
}
