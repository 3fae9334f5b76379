import { expect, test } from 'vitest'
import { base32, stepOfCode, totpCode, totpUri } from '../../src/identity/members/totp.ts'

const secret = Buffer.from('12345678901234567890')

// RFC 6238, appendix B, the last six of its eight digits.
test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('at second %i the code is %s', (second, code) => {
  expect(totpCode(secret, BigInt(Math.floor(second / 30)))).toBe(code)
})

test('a code is valid for its step, the one before and the one after', () => {
  const nowMs = 1_111_111_111_000
  const step = BigInt(Math.floor(nowMs / 30_000))
  const found = [-2n, -1n, 0n, 1n, 2n].map((offset) =>
    stepOfCode(secret, totpCode(secret, step + offset), nowMs),
  )
  expect(found).toEqual([null, step - 1n, step, step + 1n, null])
})

test('the address in the QR code names the merchant and the person', () => {
  // RFC 4648, section 10.
  expect(base32(Buffer.from('foobar'))).toBe('MZXW6YTBOI')
  const uri = new URL(totpUri('Épicerie & Fils', 'awa@shop.test', secret))
  expect(decodeURIComponent(uri.pathname)).toBe('/Épicerie & Fils:awa@shop.test')
  expect(uri.searchParams.get('secret')).toBe('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  expect(uri.searchParams.get('issuer')).toBe('Épicerie & Fils')
})
