import { type AddressInfo, createServer, type Socket } from 'node:net'

// The limit of `subscribe`: one buffer, written to every connection.
const sockets = new Set<Socket>()
const server = createServer((socket) => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
  sockets.add(socket)
})

process.on('message', ({ bytes }: { bytes: number }) => {
  const began = Number(process.hrtime.bigint())
  const frame = Buffer.alloc(bytes, 'x')
  for (const socket of sockets) socket.write(frame)
  process.send?.(began)
})
process.on('disconnect', () => process.exit())
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
