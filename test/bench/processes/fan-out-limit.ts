import { type AddressInfo, createServer, type Socket } from 'node:net'
import { actAtRate, type Pace } from '../pace.ts'

// The limit of `subscribe`: one buffer, written to every connection.
// Readers of several groups say their own; an event is for one group.
const sockets = new Map<Socket, number>()
const server = createServer((socket) => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
  sockets.set(socket, 0)
  socket.on('data', (part) => sockets.set(socket, part[0] ?? 0))
})

/** One event, or some at a rate to each group in turn. Answered with the moments at which they began. */
export interface LimitQuestion {
  bytes: number
  pace?: Pace
  groups?: number
}

function write(bytes: number, group: number): void {
  const frame = Buffer.alloc(bytes, 'x')
  // A text frame of WebSockets, so that both kinds of readers count alike.
  frame[0] = 0x81
  if (bytes < 128) frame[1] = bytes - 2
  else {
    frame[1] = 126
    frame.writeUInt16BE(bytes - 4, 2)
  }
  for (const [socket, own] of sockets) if (own === group) socket.write(frame)
}

process.on('message', ({ bytes, pace, groups = 1 }: LimitQuestion) => {
  const began = Number(process.hrtime.bigint())
  if (pace) void actAtRate(pace, (n) => write(bytes, n % groups)).then((moments) => process.send?.(moments))
  else {
    write(bytes, 0)
    process.send?.([began])
  }
})
process.on('disconnect', () => process.exit())
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
