import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { childOptions } from '../child.ts'

export interface PageLimitOptions {
  file: string
}

// The limits of `page`. The properties of the file were read once, as sirv does in production; `/disk`
// streams it anew for each request, as sirv does too, and `/memory` answers with the bytes that were read at
// the start.
const { file } = childOptions() as PageLimitOptions
const { size, mtime } = statSync(file)
const content = readFileSync(file)
const headers = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Length': size,
  'Last-Modified': mtime.toUTCString(),
  ETag: `W/"${size}-${mtime.getTime()}"`,
  'Cache-Control': 'no-cache',
}
const server = createServer((message, response) => {
  if (message.url === '/disk') createReadStream(file).pipe(response.writeHead(200, headers))
  else if (message.url === '/memory') response.writeHead(200, headers).end(content)
  else response.writeHead(404).end()
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
