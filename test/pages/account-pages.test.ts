import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApp, type TestApp } from '../kit/app.ts'

// The pages that letters lead to, as they leave the service.

let service: TestApp
beforeAll(async () => {
  service = await startTestApp()
})
afterAll(() => service.close())

const read = async (path: string) => (await fetch(`${service.url}${path}`)).text()
/** All that a pattern finds. */
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found]) => found)

test.each(['/join', '/reset-password', '/mail'])('%s is French first, with English beside', async (path) => {
  const [french, english] = [await read(path), await read(`${path}?lang=en`)]
  expect(french).toContain('<html lang="fr">')
  expect(french).toContain('<a id="other" href="?lang=en" lang="en">English</a>')
  expect(english).toContain('<html lang="en">')
  expect(english).toContain('<a id="other" href="?lang=fr" lang="fr">Français</a>')
  expect(french).toContain('width=device-width')
  const [title] = all(french, /<h1>(.*)<\/h1>/g)
  expect(english).not.toContain(title)
})

test.each(['/', '/mail', '/join', '/reset-password'])('%s is listed and framed by nobody', async (path) => {
  const { headers } = await fetch(`${service.url}${path}`)
  expect(headers.get('x-robots-tag')).toBe('noindex, nofollow')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  const policy = headers.get('content-security-policy')
  for (const part of ["default-src 'none'", "frame-ancestors 'none'"]) expect(policy).toContain(part)
})

test.each(['/join', '/reset-password'])(
  '%s names its fields, and where it tells what is wrong',
  async (path) => {
    const page = await read(path)
    const fields = all(page, /<input id="(\w+)"/g)
    expect(fields).toEqual(['password', 'again'])
    expect(all(page, /<label for="(\w+)"/g)).toEqual(fields)
    const places = fields.map((field) => `${field}-problem`)
    expect(all(page, /aria-describedby="([\w-]+)"/g)).toEqual(places)
    expect(all(page, /class="problem" id="([\w-]+)"/g)).toEqual(places)
    expect(page).toMatch(/<noscript>.*JavaScript/)
    // Whatever a letter proves stands behind the `#`, which no server sees; no script stands in the page.
    const scripts = all(page, /<script([^>]*)>/g)
    expect(scripts).toEqual([expect.stringMatching(/^ src="assets\/[\w.-]+" defer$/)])
    const [source] = all(page, /<script src="([^"]+)"/g)
    expect(await read(`/${source}`)).toContain('location.hash')
    const { headers } = await fetch(`${service.url}${path}`)
    expect(headers.get('content-security-policy')).toMatch(/script-src 'self';(?!.*unsafe)/)
  },
)
