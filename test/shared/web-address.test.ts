import fc from 'fast-check'
import { expect, test } from 'vitest'
import { webAddress } from '../../src/shared/web-address.ts'

const shop = 'https://shop.example'

test.each([
  [`${shop}/ok?x=1#top`, `${shop}/ok?x=1#top`],
  ['http://127.0.0.1:8080/', 'http://127.0.0.1:8080/'],
  [shop, `${shop}/`],
  [`  ${shop}/ok\u00a0`, `${shop}/ok`],
  ['HTTPS://Shop.EXAMPLE/Ok', `${shop}/Ok`],
  ['https://boutique-é.example/é?é#é', 'https://xn--boutique--j4a.example/%C3%A9?%C3%A9#%C3%A9'],
  ['https://ｓｈｏｐ.example/', `${shop}/`],
  [`${shop}/merci🙏`, `${shop}/merci%F0%9F%99%8F`],
  [`${shop}/deux mots?a b`, `${shop}/deux%20mots?a%20b`],
  [`${shop}/%c3%a9%zz`, `${shop}/%c3%a9%zz`],
  [`${shop}/a/../b/./c`, `${shop}/b/c`],
  [`${shop}:443/`, `${shop}/`],
  [`${shop}:`, `${shop}/`],
  [`${shop}/?mail=awa@example.com`, `${shop}/?mail=awa@example.com`],
  [`${shop}/@awa`, `${shop}/@awa`],
  [`${shop}?at=@`, `${shop}/?at=@`],
])('%j is %s', (given, href) => {
  expect(webAddress.parse(given)).toBe(href)
})

const hidden = 'must not contain control or hidden characters'
const noAddress = 'must be an http or https address'
const slashes = 'must have two slashes after the scheme, and then a host'
const tooLong = 'must have at most 2048 characters, with é written as %C3%A9'

test.each([
  ['', noAddress],
  ['shop.example', noAddress],
  ['//shop.example', noAddress],
  ['/relative', noAddress],
  ['javascript:alert(1)', noAddress],
  ['data:text/html,x', noAddress],
  ['ftp://shop.example/', noAddress],
  ['https', noAddress],
  ['https://shop .example/', noAddress],
  ['https://shop.example:70000/', noAddress],
  ['https://[::1/', noAddress],
  ['https:', slashes],
  ['https://', slashes],
  ['https:shop.example', slashes],
  ['https:/shop.example', slashes],
  ['https:///shop.example', slashes],
  ['https:\\\\shop.example', 'must not contain a backslash'],
  ['https:/\\shop.example', 'must not contain a backslash'],
  [`${shop}\\ok`, 'must not contain a backslash'],
  [`${shop}/?a=\\`, 'must not contain a backslash'],
  ['https://shop\t.example/', hidden],
  [`${shop}/a\nb`, hidden],
  [`${shop}/\n`, hidden],
  [`\u0000${shop}/`, hidden],
  [`${shop}/\u007f`, hidden],
  [`${shop}/\u200b`, hidden],
  [`\ufeff${shop}/`, hidden],
  [`${shop}/\ud800`, hidden],
  ['https://awa@shop.example/', 'must not contain a user name or a password'],
  ['https://awa:x@shop.example/', 'must not contain a user name or a password'],
  ['https://@shop.example/', 'must not contain a user name or a password'],
  ['https://:@shop.example/', 'must not contain a user name or a password'],
  [`${shop}:0/`, 'must not have port 0'],
  [`${shop}:00/`, 'must not have port 0'],
  [`${shop}/${'a'.repeat(2_048)}`, 'must have at most 2048 characters'],
  [`${shop}/${'é'.repeat(400)}`, tooLong],
  [`${shop}/${' '.repeat(700)}a`, tooLong],
])('%j is refused: %s', (given, message) => {
  expect(webAddress.safeParse(given).error?.issues.map((issue) => issue.message)).toEqual([message])
})

test('the longest address has 2,048 characters in ASCII', () => {
  const path = (length: number) => `${shop}/${'a'.repeat(length - shop.length - 7)}`
  expect(webAddress.parse(`${path(2_048)}é`)).toHaveLength(2_048)
  expect(webAddress.safeParse(`${path(2_049)}é`).success).toBe(false)
})

test('an accepted address is one line of ASCII, and reading it again changes nothing', () => {
  const parts = fc.constantFrom(
    'https://',
    'HTTP:',
    '/',
    '\\',
    'é',
    ' ',
    '@',
    ':',
    '0',
    '🙏',
    '%',
    '\t',
    '.',
    'a',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(parts, fc.string({ unit: 'grapheme' })), { maxLength: 12 }), (words) => {
      const href = webAddress.safeParse(words.join('')).data ?? `${shop}/`
      expect(href).toMatch(/^https?:\/\/[\x21-\x7e]+$/)
      expect(webAddress.parse(href)).toBe(href)
    }),
  )
})
