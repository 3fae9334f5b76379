import { encode } from 'uqr'

/** Draws a text as a QR code. */
export function QrCode({ text, name }: { text: string; name: string }) {
  const { data, size } = encode(text)
  const cells = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  return (
    <svg
      className="qr"
      role="img"
      aria-label={name}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
    >
      <path d={cells.join('')} fill="#000" />
    </svg>
  )
}
