import { inflateSync } from 'node:zlib'
import jsqr from 'jsqr'
import { expect, test } from 'vitest'
import { makeQr } from '../../src/resources/payment-links/qr.ts'

// The module is CommonJS, as its types say.
const { default: decode } = jsqr
const page = 'https://pay.example.ml/l/boutique-de-moussa'

/** The dots of our own QR code: one bit each, no filter. */
function dotsOf(png: Buffer): { size: number; rgba: Uint8ClampedArray } {
  expect(png.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n')
  const size = png.readUInt32BE(16)
  const length = png.readUInt32BE(33)
  const lines = inflateSync(png.subarray(41, 41 + length))
  const perLine = 1 + Math.ceil(size / 8)
  const rgba = new Uint8ClampedArray(size * size * 4)
  for (let dot = 0; dot < size * size; dot += 1) {
    const [x, y] = [dot % size, Math.floor(dot / size)]
    const isWhite = ((lines[y * perLine + 1 + (x >> 3)] ?? 0) >> (7 - (x % 8))) & 1
    rgba.set([isWhite * 255, isWhite * 255, isWhite * 255, 255], dot * 4)
  }
  return { size, rgba }
}

test('a reader of QR codes finds the address in the image', async () => {
  const { size, rgba } = dotsOf((await makeQr(page)).png)
  expect(decode(rgba, size, size)?.data).toBe(page)
})

test('the SVG has the dots of the PNG', async () => {
  const { svg, png } = await makeQr(page)
  const { size, rgba } = dotsOf(png)
  const [, modules = ''] = /viewBox="0 0 (\d+) \1"/.exec(svg) ?? []
  const scale = size / Number(modules)
  const drawn = new Set(Array.from(svg.matchAll(/M(\d+) (\d+)h1v1h-1z/g), ([, x, y]) => `${x} ${y}`))
  for (let y = 0; y < Number(modules); y += 1) {
    for (let x = 0; x < Number(modules); x += 1) {
      const isDark = rgba[(y * scale * size + x * scale) * 4] === 0
      expect(drawn.has(`${x} ${y}`)).toBe(isDark)
    }
  }
})
