import { expect, test } from 'vitest'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1', IN_FLIGHT_MAX: '10000' })
const links = 10
const payers = 60

/** Sends a form from an address of its own. @returns the status */
async function pay(url: string, nth: number, link: number): Promise<number> {
  const phone = `7010${String(link).padStart(2, '0')}${String(nth).padStart(2, '0')}`
  const { status } = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'X-Forwarded-For': `10.${link}.${nth}.1` },
    body: new URLSearchParams({ amount: '5000', phone }),
  })
  return status
}

test('60 payers at once of a link for one payment: one is prompted, the others read why not', async () => {
  const { token } = await fixture.merchant()
  const urls = []
  for (let link = 0; link < links; link += 1) {
    const body = { title: 'Dernière place', amount: 5_000, usage_limit: 1 }
    const { body: made } = await fixture.rest('POST', '/payment-links', { token, body })
    urls.push([Number(made.data.id), `${fixture.url}/l/${made.data.url_slug}`] as const)
  }
  for (const [link, [id, url]] of urls.entries()) {
    const answers = await Promise.all(Array.from({ length: payers }, (_, nth) => pay(url, nth, link)))
    expect(answers.filter((status) => status === 303)).toHaveLength(1)
    expect(answers.filter((status) => status >= 500)).toEqual([])
    const { rows } = await fixture.database.owner.query<{ prompts: number }>(
      `SELECT count(*)::int AS prompts FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
       WHERE t.payment_link_id = $1`,
      [id],
    )
    expect({ link, ...rows[0] }).toEqual({ link, prompts: 1 })
  }
})
