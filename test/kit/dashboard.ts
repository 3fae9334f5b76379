import type { Page } from 'playwright-core'
import type { TestApp } from './app.ts'
import { type TestBrowser, openBrowser } from './browser.ts'
import type { PasswordMember } from './people.ts'

/** Starts the service and a browser of its own. */
export async function openDashboard<Service extends TestApp>(
  start: () => Promise<Service>,
  width = 360,
): Promise<{ service: Service; browser: TestBrowser }> {
  const [service, browser] = await Promise.all([start(), openBrowser({ width, javaScript: true })])
  return { service, browser }
}

/** Opens a page of the dashboard as a stranger: without the cookie and the language of an earlier visitor. */
export async function visit(browser: TestBrowser, address: string): Promise<Page> {
  await browser.context.clearCookies()
  return openAfresh(browser, address)
}

async function openAfresh(browser: TestBrowser, address: string): Promise<Page> {
  const page = await browser.context.newPage()
  await page.goto(new URL('/schema.graphql', address).href)
  await page.evaluate('localStorage.clear()')
  await page.goto(address)
  return page
}

/** Types the credentials and sends them. */
export async function typeCredentials(
  page: Page,
  { email, password }: Pick<PasswordMember, 'email' | 'password'>,
) {
  await page.getByLabel('Adresse e-mail').fill(email)
  await page.getByLabel('Mot de passe', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Se connecter' }).click()
}

/** Opens the dashboard as a person who signed in before. */
export async function signedIn(
  browser: TestBrowser,
  service: TestApp,
  { token }: PasswordMember,
  path = '',
): Promise<Page> {
  await browser.context.clearCookies()
  const cookie = { name: 'merchant_session', value: token, url: service.url }
  await browser.context.addCookies([{ ...cookie, httpOnly: true, sameSite: 'Strict' }])
  const page = await openAfresh(browser, `${service.url}/app${path}`)
  await page.locator('.menu').waitFor()
  return page
}
