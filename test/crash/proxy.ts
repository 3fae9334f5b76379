import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A proxy between the service and its database. */
export interface Proxy {
  port: number
  /** Switches random resets of connections on or off. */
  reset(on: boolean): void
  /** Connections reset so far. */
  count(): number
  close(): Promise<void>
}

const everyMs = 120
const share = 0.15

/**
 * Listens on a port of 127.0.0.1 and forwards every connection to the socket at `path`. Where the socket is
 * gone, the caller's connection is reset.
 */
export async function startProxy(path: string, random: () => number): Promise<Proxy> {
  const pairs = new Map<Socket, Socket>()
  let resetting = false
  let resets = 0
  const server = createServer({ noDelay: true }, (client) => {
    const database = connect(path)
    pairs.set(client, database)
    const drop = () => {
      pairs.delete(client)
      client.destroy()
      database.destroy()
    }
    client.on('error', drop).on('close', drop)
    database.on('error', () => client.resetAndDestroy()).on('close', drop)
    client.pipe(database).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const timer = setInterval(() => {
    for (const [client, database] of resetting ? [...pairs] : []) {
      if (random() >= share) continue
      resets += 1
      client.resetAndDestroy()
      database.destroy()
    }
  }, everyMs)
  return {
    port: (server.address() as AddressInfo).port,
    reset: (on) => (resetting = on),
    count: () => resets,
    async close() {
      clearInterval(timer)
      server.close()
      for (const client of pairs.keys()) client.destroy()
      await once(server, 'close')
    },
  }
}
