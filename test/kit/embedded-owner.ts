import { startEmbedded } from '../../src/database/embedded.ts'

// A process that only opens the database, for embedded-fixture.ts: it starts the server, prints its address,
// and waits for its end.
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
