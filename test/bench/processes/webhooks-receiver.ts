import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// A receiver that is as fast as one can be: it takes everything, and looks at nothing.
const server = createServer((request, response) => {
  request.resume()
  request.once('end', () => response.writeHead(204).end())
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => process.exit())
process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` })
