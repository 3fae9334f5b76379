import { startEngine } from '../../src/jobs/engine.ts'
import { serviceRole } from '../../src/database/migrate.ts'
import { createLog } from '../../src/telemetry/log.ts'

// An engine in a process of its own; its jobs report their beginning and never end, until the test kills it.

const [, , connectionString = ''] = process.argv
startEngine({
  connection: { connectionString },
  role: serviceRole,
  jobsAtOnce: 8,
  sessionsMax: 8,
  tasks: {
    'payouts.send': async ({ provider }) => {
      process.stdout.write(`${provider}\n`)
      await new Promise(() => {})
    },
  },
  log: createLog('silent'),
})
