import { startEmbedded } from '../../src/database/embedded.ts'

// A service as far as its database goes, for embedded-fixture.ts: starts it, says where it is, and waits to
// be ended.
const [dataDir = ''] = process.argv.slice(2)
const server = await startEmbedded({
  dataDir,
  durable: false,
  log: (event) => process.stderr.write(`${event}\n`),
}).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
})
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)))
process.stdout.write(`${JSON.stringify(server.connection())}\n`)
setInterval(() => {}, 60_000)
