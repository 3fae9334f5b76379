import { crc32, deflateSync } from 'node:zlib'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { noSuchLink } from './update.ts'

/** The white border around a code in modules (ISO/IEC 18004), and the pixels of the PNG for one module. */
const quietModules = 4
const scale = 8

/** Returns the address of the page of a link. */
export function linkUrl({ addresses }: Pick<Context, 'addresses'>, slug: string): string {
  return `${addresses.publicUrl}/l/${slug}`
}

/** Makes the QR code of the address of a link. @throws DomainError NOT_FOUND */
export async function qrOfLink(ctx: Context, id: number): Promise<Qr> {
  const where = { id, ...mine(ctx) }
  const link = await ctx.database.prisma.paymentLink.findFirst({ where, select: { urlSlug: true } })
  if (!link) throw noSuchLink()
  return makeQr(linkUrl(ctx, link.urlSlug))
}

/** A QR code as SVG, to be shown, and as PNG, to be printed. */
export interface Qr {
  svg: string
  png: Buffer
}

/** Makes the QR code of a text. It can be read even if 15 % of it is damaged. */
export async function makeQr(text: string): Promise<Qr> {
  // Load the library only when it is needed: few requests use it, and the start is faster without it.
  const { encode } = await import('uqr')
  const { data } = encode(text, { ecc: 'M', border: quietModules })
  return { svg: svgOf(data), png: pngOf(data) }
}

type Modules = readonly (readonly boolean[])[]

function svgOf(modules: Modules): string {
  const dark = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  const { length: size } = modules
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges">` +
    `<path fill="#fff" d="M0 0h${size}v${size}h-${size}z"/><path d="${dark.join('')}"/></svg>`
  )
}

/** Writes a PNG with one bit for each pixel, black and white (RFC 2083). */
function pngOf(modules: Modules): Buffer {
  const size = modules.length * scale
  const head = Buffer.alloc(13)
  head.writeUInt32BE(size, 0)
  head.writeUInt32BE(size, 4)
  head.set([1], 8)
  const rows = modules.flatMap((row) => {
    const line = Buffer.alloc(1 + Math.ceil(size / 8))
    for (let x = 0; x < size; x += 1) {
      const bit = row[Math.floor(x / scale)] ? 0 : 0x80 >> (x % 8)
      line[1 + (x >> 3)] = (line[1 + (x >> 3)] ?? 0) | bit
    }
    return Array.from({ length: scale }, () => line)
  })
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.concat(rows))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(name: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), content])
  const frame = Buffer.alloc(body.length + 8)
  frame.writeUInt32BE(content.length, 0)
  frame.set(body, 4)
  frame.writeUInt32BE(crc32(body), body.length + 4)
  return frame
}
