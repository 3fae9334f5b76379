import { enableCompileCache } from 'node:module'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `This needs Node 24.12 or newer, and here is ${process.version}: type "npm ci", then "npm start".\n`,
  )
  process.exit(1)
}
// Halves the time of the imports below, from the second start on.
enableCompileCache()
const { runService } = await import('./terminal/run.ts')
await runService()
