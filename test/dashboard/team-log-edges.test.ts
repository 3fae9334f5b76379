import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { makePerson } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The log is read by an owner who does not know the words of the programs.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

/** A shop whose administrator made changes of every kind, and left. */
async function madeLog() {
  const { merchantId } = await service.merchant('Pharmacie du Fleuve')
  const owner = await makePerson(service, merchantId, { name: 'Awa Traoré' })
  const admin = await makePerson(service, merchantId, { role: 'admin', name: 'Moussa Keïta' })
  const clerk = await makePerson(service, merchantId, { role: 'admin', name: 'كوليبالي مامادو' })
  const run = async (token: string, mutation: string) => {
    const { body } = await service.graphql(`mutation { ${mutation} { __typename } }`, {}, token)
    expect(JSON.stringify(body)).not.toMatch(/Error"|errors/)
  }
  for (const mutation of [
    'updateSettings(input: { payoutsRequireApproval: true, locale: EN })',
    'updateSettings(input: { approvalThreshold: 50000 })',
    'createApiKey(input: { name: "Caisse", scopes: [PAY, PAYMENT_LINKS] })',
    'registerWebhook(input: { url: "https://example.com/x", events: [DEPOSIT_COMPLETED] })',
    'createBatch(input: { title: "Paie de mai", recipients: [] })',
    `createBeneficiary(input: { name: "Ali", account: "70000001", paymentMethod: OperatorA,
       category: EMPLOYEE })`,
    `changeMemberRole(id: ${clerk.memberId}, role: FINANCE)`,
  ])
    await run(admin.token, mutation)
  await run(owner.token, `removeMember(id: ${admin.memberId})`)
  return { owner, admin, clerk }
}

describe.skipIf(cannotLook)('the log of the team', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('the log names a person who left, without a way to a missing screen', async () => {
    const { owner, admin } = await madeLog()
    const page = await signedIn(browser, service, owner, '/team/log')
    await page.getByText('Moussa Keïta').first().waitFor()
    await page.getByRole('link', { name: 'كوليبالي مامادو' }).first().waitFor()
    expect(await page.locator('main').innerText()).not.toMatch(/personne n/)
    expect(await page.getByRole('link', { name: 'Moussa Keïta' }).count()).toBe(0)
    await page.goto(`${service.url}/app/team/log?by=${admin.memberId}`)
    await page.getByText(/Changements faits par.: Moussa Keïta/).waitFor()
    await page.getByText('Ses paiements et ses versements ne sont pas ici').waitFor()
    await page.close()
  })

  test('the log writes values in words, and no code of a program', async () => {
    const { owner } = await madeLog()
    const page = await signedIn(browser, service, owner, '/team/log')
    await page.getByText('Clé de programme créée').waitFor()
    await page.getByRole('link', { name: 'كوليبالي مامادو' }).first().waitFor()
    for (const summary of await page.getByText('Voir ce qui a changé').all()) await summary.click()
    // The first letters of a key are its own.
    const text = (await page.locator('main').innerText()).replaceAll(/mk_\w+/g, '')
    expect(text).not.toMatch(/[a-z]_[a-z]|[{}]|\bemployee\b|fr → en|\bpending\b/)
    expect(text).toMatch(/Clé d’une personne retirée de l’équipe\s+clé n/)
    expect(text).toMatch(/Changement des règles demandé\s+changement n/)
    expect(text).toMatch(/encaisser, liens de paiement/)
    expect(text).toMatch(/français → anglais/)
    expect(text).toMatch(/Personne qui l’a reçue\s+Moussa Keïta/)
    expect(text).toMatch(/À approuver à partir de.: 50.000.F.CFA/)
    await page.close()
  })

  test('the way back from a person leads to the page that was read, with its payments', async () => {
    const { merchantId } = await service.merchant('Pharmacie du Fleuve')
    await fundMerchant(service.app.services, merchantId, { amount: 100_000 })
    const owner = await makePerson(service, merchantId, { name: 'Awa Traoré' })
    const rest = (path: string, body: object) =>
      service.rest(path === '/settings' ? 'PUT' : 'POST', path, { token: owner.token, body })
    const payment = { amount: 5_000, customer_phone: '70000001', payment_method: 'OperatorA' }
    await rest('/deposit', payment)
    await rest('/team/invite', { name: 'Ali Koné', email: 'ali@log.test', role: 'viewer' })
    for (let turn = 1; turn <= 50; turn += 1) await rest('/settings', { business_name: `Chez Awa ${turn}` })
    const page = await signedIn(browser, service, owner, '/team/log')
    await page.getByLabel('Afficher aussi les paiements').check()
    await page.getByRole('button', { name: 'Voir la suite' }).click()
    await page.getByText('Dépôt', { exact: true }).waitFor({ timeout: 15_000 })
    await page.getByRole('link', { name: 'Ali Koné' }).click()
    await page.getByRole('heading', { name: 'Ali Koné' }).waitFor()
    await page.goBack()
    await page.getByText('Dépôt', { exact: true }).waitFor({ timeout: 15_000 })
    expect(await page.getByLabel('Afficher aussi les paiements').isChecked()).toBe(true)
    await page.close()
  })

  test('a verification whose answer was lost goes on from the last part that was verified', async () => {
    const { owner } = await madeLog()
    const page = await signedIn(browser, service, owner, '/team/log')
    const parts: unknown[] = []
    await page.route('**/graphql', async (route) => {
      const { query, variables } = route.request().postDataJSON() as Record<string, unknown>
      if (!String(query).includes('VerifyLogQuery')) return route.continue()
      parts.push(variables)
      const verdict = { __typename: 'AuditLogVerdict', isIntact: true, upTo: 20_000, head: 'x' }
      const verifyAuditLog = { ...verdict, isComplete: parts.length > 2, sealedAt: null, fault: null }
      return parts.length === 2 ? route.abort() : route.fulfill({ json: { data: { verifyAuditLog } } })
    })
    await page.getByRole('button', { name: 'Vérifier' }).click()
    await page.getByText('Le service ne répond pas.').waitFor()
    expect(await page.getByText(/Intact.:/).count()).toBe(0)
    await page.getByRole('button', { name: 'Vérifier' }).click()
    await page.getByText(/Intact.: 20.000 lignes vérifiées/).waitFor()
    expect(parts).toEqual([{ after: 0 }, { after: 20_000 }, { after: 20_000 }])
    await page.close()
  })
})
