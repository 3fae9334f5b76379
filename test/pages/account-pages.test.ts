import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApp, type TestApp } from '../kit/app.ts'

// The pages that emails link to, as the service sends them.

let service: TestApp
beforeAll(async () => {
  service = await startTestApp()
})
afterAll(() => service.close())

const read = async (path: string) => (await fetch(`${service.url}${path}`)).text()
/** All matches of a pattern. */
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found]) => found)

test.each(['/join', '/reset-password', '/mail'])(
  'the page %s is French first, with English beside',
  async (path) => {
    const [french, english] = [await read(path), await read(`${path}?lang=en`)]
    expect(french).toContain('<html lang="fr">')
    expect(french).toContain('<a id="other" href="?lang=en" lang="en">English</a>')
    expect(english).toContain('<html lang="en">')
    expect(english).toContain('<a id="other" href="?lang=fr" lang="fr">Français</a>')
    expect(french).toContain('width=device-width')
    const [title] = all(french, /<h1>(.*)<\/h1>/g)
    expect(english).not.toContain(title)
  },
)

test.each(['/', '/mail', '/join', '/reset-password'])(
  'no list of pages or frame holds the page %s',
  async (path) => {
    const { headers } = await fetch(`${service.url}${path}`)
    expect(headers.get('x-robots-tag')).toBe('noindex, nofollow')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    const policy = headers.get('content-security-policy')
    for (const part of ["default-src 'none'", "frame-ancestors 'none'"]) expect(policy).toContain(part)
  },
)

test.each(['/join', '/reset-password'])(
  'the page %s names its fields, and the places of its errors',
  async (path) => {
    const page = await read(path)
    const fields = all(page, /<input id="(\w+)"/g)
    expect(fields).toEqual(['password', 'again'])
    expect(all(page, /<label for="(\w+)"/g)).toEqual(fields)
    const problemIds = fields.map((field) => `${field}-problem`)
    expect(all(page, /aria-describedby="([\w-]+)"/g)).toEqual(problemIds)
    expect(all(page, /class="problem" id="([\w-]+)"/g)).toEqual(problemIds)
    expect(page).toMatch(/<noscript>.*JavaScript/)
    // The token of an email stands behind the `#`, which no server sees; no script stands in the page.
    const scripts = all(page, /<script([^>]*)>/g)
    expect(scripts).toEqual([expect.stringMatching(/^ src="assets\/[\w.-]+" defer$/)])
    const [source] = all(page, /<script src="([^"]+)"/g)
    expect(await read(`/${source}`)).toContain('location.hash')
    const { headers } = await fetch(`${service.url}${path}`)
    expect(headers.get('content-security-policy')).toMatch(/script-src 'self';(?!.*unsafe)/)
  },
)
