import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type AddressMatcher, addressBlock, canonicalAddress } from '../shared/ip-whitelist.ts'
import { takeSlots } from '../limits/slot.ts'
import type { ConnectionMaxima } from '../config/connections.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import { closeConnection } from './close-connection.ts'
import { refusalText } from './malformed.ts'
import { waits } from '../shared/waits.ts'

/** The bounds of the server's connections; an IPv6 network of 64 bits counts as one client address. */
export interface ConnectionBounds extends Pick<ConnectionMaxima, 'max' | 'perAddressMax'> {
  /**
   * Whether an address is a trusted proxy. Its connections belong to many clients: only `max` bounds them.
   */
  isTrustedProxy: AddressMatcher
  log: Log
}

/**
 * The number of connections beyond `max` that are open at the same time to receive their refusal. Choice.
 * Node drops further connections without an answer, so that refusals, too, use a bounded number of file
 * descriptors.
 */
const refusedMax = 256
/** The pause between two log lines that count the refused connections. */
const logEveryMs = 60_000

/** Refuses connections over the bounds with 503 and `Retry-After`, before any of their bytes are parsed. */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  server.maxConnections = bounds.max + refusedMax
  // Node's own listener begins to parse the request. A refused connection must not reach it.
  const parse = server.listeners('connection')
  server.removeAllListeners('connection')
  const taken = new Map<string, number>()
  const logRefusal = refusalLogger(bounds)
  server.on('connection', (socket: Socket) => {
    const address = canonicalAddress(socket.remoteAddress?.split('%', 1)[0] ?? '')
    const slots = [{ key: 'all', max: bounds.max, whose: 'CONNECTIONS_MAX' }]
    if (!bounds.isTrustedProxy(address)) {
      const block = addressBlock(address)
      slots.push({ key: block, max: bounds.perAddressMax, whose: 'CONNECTIONS_PER_ADDRESS_MAX' })
    }
    const leave = takeSlots(taken, slots)
    if (typeof leave === 'function') {
      socket.once('close', leave)
      for (const listener of parse) listener.call(server, socket)
      return
    }
    logRefusal(leave.whose, address)
    refuseConnection(socket)
  })
}

/** Refuses a connection: answers when the first byte arrives, and closes the connection in any case. */
function refuseConnection(socket: Socket): void {
  socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), waits.firstByteMs)
  socket.once('data', () => {
    clearTimeout(timer)
    closeConnection(socket, refusalText('OVERLOADED', [`Retry-After: ${limits.overloadRetryS}`]))
  })
  socket.once('close', () => clearTimeout(timer))
}

/**
 * Makes a function that logs refused connections, one line a minute at most: a flood of connections must not
 * cause a flood of lines.
 */
function refusalLogger({ log }: ConnectionBounds): (setting: string, address: string | null) => void {
  let refused = 0
  let nextAt = 0
  return (setting, address) => {
    refused += 1
    if (performance.now() < nextAt) return
    log.warn(
      { setting, address, refused },
      'connections refused: more than the setting allows. Name proxies in TRUSTED_PROXIES',
    )
    refused = 0
    nextAt = performance.now() + logEveryMs
  }
}
