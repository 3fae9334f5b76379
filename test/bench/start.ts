import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { newHome, startProgram } from '../kit/program.ts'
import type { BenchEntry, Workload } from './rounds.ts'

const bare = `require('node:http').createServer().listen(0, '127.0.0.1', () => console.log('ready'))`
/** After this time what the start left behind is tidied up, and given back. */
const idleMs = 10_000

/** A warm start to the first screen, against a bare server; then what lies idle in memory. */
export const start: Workload = async () => {
  const home = await newHome()
  // The first start makes the database and fills the compile cache: it does not count.
  await (await startProgram(home)).end('SIGTERM')
  return {
    sections: [
      {
        title: 'start',
        unit: 'ms',
        entries: [
          entry('limit: bare node:http', startBare, false),
          entry('service, warm', () => startProgram(home), false, { ratioMax: 20 }),
        ],
      },
      {
        title: 'idle memory',
        unit: 'MB resident',
        entries: [
          entry('bare node:http', startBare, true),
          entry('service', () => startProgram(home), true, { valueMax: 180 }),
        ],
      },
    ],
    notes: ['warm: from the call to the first screen, with the embedded PostgreSQL and the simulator.'],
    close: () => home.remove(),
  }
}

interface Started {
  child: { pid?: number | undefined }
  end(signal: NodeJS.Signals): Promise<unknown>
}

async function startBare(): Promise<Started> {
  const child = spawn(process.execPath, ['-e', bare], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return {
    child,
    async end(signal) {
      child.kill(signal)
      await once(child, 'exit')
    },
  }
}

/** Starts it, and measures either the start or what it takes after a while. */
function entry(
  name: string,
  begin: () => Promise<Started>,
  isIdle: boolean,
  goal?: BenchEntry['goal'],
): BenchEntry {
  const measure = async () => {
    const begun = performance.now()
    const started = await begin()
    let value = performance.now() - begun
    if (isIdle) {
      await sleep(idleMs)
      const status = readFileSync(`/proc/${started.child.pid}/status`, 'utf8')
      value = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1_024
    }
    await started.end('SIGTERM')
    return { value, operations: 1, p99Ms: Number.NaN }
  }
  return { name, processes: [], goal, measure }
}
