import { enableCompileCache } from 'node:module'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `The service needs Node 24.12 or newer. This is ${process.version}: type "npm ci", then "npm start".\n`,
  )
  process.exit(1)
}
// From the second start on, the cache halves the time of the imports below.
enableCompileCache()
const { runService } = await import('./terminal/run.ts')
await runService()
