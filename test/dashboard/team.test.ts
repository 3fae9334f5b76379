import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// An owner invites people, gives them other roles, removes them, and reads who did what.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  return { shop, owner: await makePerson(service, shop.merchantId, { name: 'Awa Traoré' }) }
}
const openPage = (person: PasswordMember, path: string) => signedIn(browser, service, person, path)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const confirm = async (page: Page, name: string) => {
  await press(page, name)
  await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
}
/** Returns name, role and status of each member of a merchant, the oldest first. */
async function teamOf({ merchantId }: TestMerchant): Promise<string[]> {
  const { rows } = await service.database.owner.query<{ text: string }>(
    `SELECT concat_ws(' ', name, role, status) AS text FROM team_member WHERE merchant_id = $1 ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ text }) => text)
}

describe.skipIf(cannotLook)('the team', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a person is invited, and invited again', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/team')
    await page.getByText('Inviter une personne').click()
    await page.getByLabel('Nom').fill('Moussa Keïta')
    await page.getByLabel('Adresse e-mail').fill('moussa')
    await press(page, 'Envoyer l’invitation')
    await page.getByText('Écrivez une adresse e-mail complète').waitFor()
    await page.getByLabel('Adresse e-mail').fill('moussa@shop.test')
    await page.getByLabel('Rôle').selectOption('FINANCE')
    await press(page, 'Envoyer l’invitation')
    await page.getByText('Invitation envoyée à moussa@shop.test.').waitFor()
    await page.getByRole('link', { name: 'Moussa Keïta' }).click()
    await press(page, 'Envoyer l’invitation de nouveau')
    await page.getByText('Invitation envoyée. Le lien d’avant ne marche plus.').waitFor()
    expect(await teamOf(shop)).toContain('Moussa Keïta finance invited')
    await page.close()
  })

  test('a member gets another role and is removed; the last owner stays', async () => {
    const { shop, owner } = await shopOf()
    const clerk = await makePerson(service, shop.merchantId, { role: 'viewer', name: 'Moussa Keïta' })
    const page = await openPage(owner, '/team')
    await page.getByRole('link', { name: 'Moussa Keïta' }).click()
    await page.getByLabel('Changer le rôle').selectOption('FINANCE')
    await confirm(page, 'Changer le rôle')
    await page.getByText('Rôle changé.').waitFor()
    expect(await teamOf(shop)).toContain('Moussa Keïta finance active')
    const ended = await service.graphql('{ me { id } }', {}, clerk.token)
    expect(JSON.stringify(ended.body)).toContain('UNAUTHENTICATED')
    await confirm(page, 'Retirer de l’équipe')
    await page.getByRole('heading', { name: 'Équipe', exact: true }).waitFor()
    expect(await teamOf(shop)).toContain('Moussa Keïta finance removed')
    await page.getByRole('link', { name: 'Awa Traoré' }).click()
    await confirm(page, 'Retirer de l’équipe')
    await page.getByText('C’est le dernier propriétaire').waitFor()
    expect(await teamOf(shop)).toContain('Awa Traoré owner active')
    await page.close()
  })

  test('an administrator manages no owner, and a member of the finances sees no team', async () => {
    const { shop } = await shopOf()
    const admin = await makePerson(service, shop.merchantId, { role: 'admin', name: 'Fanta Diarra' })
    const page = await openPage(admin, '/team')
    await page.getByRole('link', { name: 'Awa Traoré' }).click()
    await page.getByText('Votre rôle ne permet pas de changer cette personne.').waitFor()
    expect(await page.getByRole('button', { name: 'Retirer de l’équipe' }).count()).toBe(0)
    await page.close()
    const clerk = await makePerson(service, shop.merchantId, { role: 'finance' })
    const other = await openPage(clerk, '')
    await other.locator('canvas, .steps').first().waitFor()
    expect(await other.getByRole('link', { name: 'Équipe' }).count()).toBe(0)
    await other.close()
  })

  test('the log names people and changes in words, and its chain is verified', async () => {
    const { shop, owner } = await shopOf()
    const change = 'mutation { updateSettings(input: { businessName: "Chez Awa" }) { __typename } }'
    await service.graphql(change, {}, owner.token)
    const page = await openPage(owner, '/team/log')
    await page.getByText('Réglages changés').first().waitFor()
    await page.getByText('Voir ce qui a changé').first().click()
    await page.getByText('Chez Awa').first().waitFor()
    await press(page, 'Vérifier')
    await page.getByText(/Intact/).waitFor()
    await service.database.owner.query(
      `BEGIN; SET LOCAL session_replication_role = replica;
       UPDATE audit_entry SET actor = 'platform'
       WHERE merchant_id = ${shop.merchantId} AND operation = 'updateSettings'; COMMIT`,
    )
    await press(page, 'Vérifier')
    await page.getByText(/La chaîne est rompue à la ligne/).waitFor()
    expect(await page.getByText(/Intact/).count()).toBe(0)
    await page.close()
  })
})
