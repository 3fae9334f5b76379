import { makePerson } from '../kit/people.ts'
import { lookAt, type Visit } from '../kit/screens.ts'

const invited = 'abdoul-karim.ag-mohamed-elmoctar.maiga.responsable-achats@cooperative-koulikoro.example.ml'

/** Makes a team of every role and state, and what the log shows of it. */
async function make({ service, shop: { merchantId, token } }: Visit): Promise<void> {
  const post = (path: string, body: object) => service.rest('POST', path, { token, body })
  await makePerson(service, merchantId, { role: 'viewer', name: 'كوليبالي مامادو' })
  const admin = await makePerson(service, merchantId, { role: 'admin', name: 'Moussa Keïta' })
  await post('/team/invite', { name: 'x'.repeat(80), email: invited, role: 'finance' })
  await post('/payment-links', { title: 'Riz 25 kg', amount: 12_500, description: 'y'.repeat(300) })
  const settings = { business_name: 'Coopérative', approval_threshold: 25_000, approvals_required: 2 }
  await service.rest('PUT', '/settings', { token: admin.token, body: settings })
  await post('/deposit', { amount: 5_000, customer_phone: '70000001', payment_method: 'OperatorA' })
}

async function memberOf({ service, goTo }: Visit, name: string): Promise<void> {
  const { rows } = await service.database.owner.query<{ id: number }>(
    'SELECT id FROM team_member WHERE name = $1',
    [name],
  )
  await goTo(`/team/${rows[0]?.id}`)
}
async function wrongInvitation({ page, goTo }: Visit): Promise<void> {
  await goTo('/team')
  await page.getByText('Inviter une personne').click()
  await page.getByLabel('Nom').fill('Moussa')
  await page.getByLabel('Adresse e-mail').fill('moussa')
  await page.getByRole('button', { name: 'Envoyer l’invitation' }).click()
}
async function anotherRole(visit: Visit): Promise<void> {
  await memberOf(visit, 'Moussa Keïta')
  await visit.page.getByLabel('Changer le rôle').selectOption('VIEWER')
}
async function verified({ page, goTo }: Visit): Promise<void> {
  await goTo('/team/log')
  await page.getByLabel('Afficher aussi les paiements').check()
  await page.getByText('Dépôt').first().waitFor()
  for (const summary of await page.getByText('Voir ce qui a changé').all()) await summary.click()
  await page.getByRole('button', { name: 'Vérifier' }).click()
}
async function deeds(visit: Visit): Promise<void> {
  await memberOf(visit, 'Moussa Keïta')
  await visit.page.getByRole('link', { name: 'Ce que cette personne a changé' }).click()
}

async function scanning({ page, goTo }: Visit): Promise<void> {
  await goTo('/sessions')
  await page.getByRole('button', { name: 'Activer' }).click()
  await page.getByLabel('Votre mot de passe').fill('le soleil de Bamako')
  await page.getByRole('button', { name: 'Continuer' }).click()
}
async function password({ page, goTo }: Visit): Promise<void> {
  await goTo('/sessions')
  await page.getByText('Changer le mot de passe').click()
}

lookAt('the team and of security', {
  make,
  screens: [
    ['team', '.rows', ({ goTo }) => goTo('/team')],
    ['team-invite-problem', '.problem', wrongInvitation],
    ['member-invited', '.request', (visit) => memberOf(visit, 'x'.repeat(80))],
    ['member-role', '.request', anotherRole],
    ['member-missing', 'main .card', ({ goTo }) => goTo('/team/0')],
    ['team-log', 'code', verified],
    ['team-log-by', '.rows', deeds],
    ['security', '.rows', ({ goTo }) => goTo('/sessions')],
    ['security-scan', '.qr', scanning],
    ['security-password', 'form', password],
  ],
  english: ['/team', '/team/log', '/sessions'],
})
