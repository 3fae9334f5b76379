import { createServer, request as forward, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, openBrowser, type TestBrowser } from '../kit/browser.ts'
import { typeCredentials } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { makePerson } from '../kit/people.ts'

/** The dashboard in real Chromium, on a small telephone. */
let service: TestApp
let browser: TestBrowser
/** A proxy that serves the service below `/pay`. */
let proxy: Server

/** Opens a page, and collects what Chromium complains about. */
async function open(address: string): Promise<{ page: Page; complaints: string[] }> {
  const page = await browser.context.newPage()
  const complaints: string[] = []
  // A stranger's page asks who is signed in, and Chromium notes the answer 401.
  page.on('console', (message) => {
    if (!/status of 401/.test(message.text())) complaints.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => void complaints.push(error.message))
  page.on('requestfailed', (request) => void complaints.push(`failed: ${request.url()}`))
  page.on('response', (response) => {
    if (response.status() >= 400 && response.status() !== 401)
      complaints.push(`${response.status()}: ${response.url()}`)
  })
  await page.goto(address)
  return { page, complaints }
}

/** Waits until the page shows that it asked the service and got an answer. */
async function works(page: Page, heading = 'Connexion'): Promise<void> {
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
}

const proxyUrl = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/pay`

describe.skipIf(cannotLook)('the dashboard in a browser', () => {
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startTestApp(), openBrowser({ width: 360, javaScript: true })])
    proxy = createServer((message, response) => {
      const { method, url = '', headers } = message
      const target = new URL(url.replace(/^\/pay/, ''), service.url)
      const onward = forward(target, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      message.pipe(onward)
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
    proxy.close()
  })

  test('it shows itself in French, asks the service, and Chromium complains about nothing', async () => {
    const { page, complaints } = await open(`${service.url}/app`)
    await works(page)
    expect(await page.title()).toBe('Tableau de bord')
    expect(await page.locator('header').textContent()).toContain('TEST')
    expect(await page.locator('html').getAttribute('lang')).toBe('fr')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    expect(complaints).toEqual([])
    await page.close()
  })

  test('its policy allows a WebSocket to GraphQL, and a script of another origin is refused', async () => {
    const { page, complaints } = await open(`${service.url}/app`)
    const opened = await page.evaluate(`new Promise((resolve) => {
      const socket = new WebSocket(location.origin.replace('http', 'ws') + '/graphql', 'graphql-transport-ws')
      socket.onopen = () => resolve('open')
      socket.onerror = () => resolve('refused')
    })`)
    expect(opened).toBe('open')
    expect(complaints).toEqual([])
    await page.evaluate(`document.head.append(
      Object.assign(document.createElement('script'), { src: 'http://127.0.0.2:1/a.js' }))`)
    await eventually(() => {
      expect(complaints.join('\n')).toMatch(/violates.* Content Security Policy/)
    })
    await page.close()
  })

  test('the choice of a language is kept', async () => {
    const { page, complaints } = await open(`${service.url}/app`)
    await page.getByRole('button', { name: 'English' }).click()
    await works(page, 'Sign in')
    await page.reload()
    await works(page, 'Sign in')
    expect(await page.title()).toBe('Dashboard')
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
    await page.getByRole('button', { name: 'Français' }).click()
    await works(page)
    expect(complaints).toEqual([])
    await page.close()
  })

  test('a deep link shows its screen after the sign-in, and the way home loads no other page', async () => {
    const { merchantId } = await service.merchant()
    const person = await makePerson(service, merchantId)
    const { page, complaints } = await open(`${service.url}/app/none/12`)
    await works(page)
    await typeCredentials(page, person)
    await works(page, 'Cette page n’existe pas.')
    await page.evaluate('window.stays = true')
    await page.getByRole('link', { name: 'Retour à l’accueil' }).click()
    await page.getByRole('heading', { name: 'Disponible' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/app/')
    expect(await page.evaluate('window.stays')).toBe(true)
    expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN')
    expect(complaints).toEqual([])
    await browser.context.clearCookies()
    await page.close()
  })

  test('a page whose script does not come says so, with a way to load it again', async () => {
    const page = await browser.context.newPage()
    await page.route('**/assets/index-*.js', (route) => route.abort())
    await page.goto(`${service.url}/app`)
    await page.unroute('**/assets/index-*.js')
    await page.getByRole('link', { name: 'rechargez la page' }).click()
    await works(page)
    expect(await page.getByText('rechargez la page').count()).toBe(0)
    await page.close()
  })

  test('it works below a path of a proxy', async () => {
    for (const path of ['/app', '/app/none/12']) {
      const { page, complaints } = await open(`${proxyUrl()}${path}`)
      await works(page)
      await page.getByRole('link', { name: 'Mot de passe oublié ?' }).click()
      await works(page, 'Mot de passe oublié')
      expect(new URL(page.url()).pathname).toBe('/pay/app/forgotten')
      expect(complaints).toEqual([])
      await page.close()
    }
  })
})
