import { join } from 'node:path'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { newHome } from '../kit/program.ts'
import { controlToken, type Drill, runDrill } from './drill.ts'

// Loses a service and restores it, and asks the operators' own book whether anything was paid twice. Exit
// code 1 where something did not hold.

const say = (line: string) => void process.stdout.write(`${line}\n`)

const begun = performance.now()
const home = await newHome({ LOG_LEVEL: 'error', OPERATORS_CONTROL_TOKEN: controlToken })
const simulator = await startSimulator({
  port: 0,
  controlToken,
  journalPath: join(home.dataDir, '..', 'operators.jsonl'),
})
home.environment['OPERATORS_URL'] = simulator.url
const drill: Drill = { home, simulator, say, findings: [], running: null }
let trouble: Error | null = null
try {
  await runDrill(drill)
} catch (error) {
  trouble = error instanceof Error ? error : new Error('it broke off', { cause: error })
} finally {
  await drill.running?.end('SIGTERM').catch(() => {})
  drill.running?.destroy()
  await simulator.close()
  await home.remove().catch(() => {})
}
say('')
for (const { what, holds, found } of drill.findings)
  say(`${holds ? 'ok    ' : 'BROKEN'}  ${what.padEnd(52)}  ${found}`)
const broken = drill.findings.filter(({ holds }) => !holds).length
if (trouble) {
  say(`\nIt broke off: ${trouble.stack}`)
  say(drill.running?.errors().slice(-2_000) ?? '')
}
const seconds = ((performance.now() - begun) / 1_000).toFixed(0)
say(`\n${drill.findings.length - broken} hold, ${broken} broken, in ${seconds} s`)
process.exitCode = trouble || broken > 0 ? 1 : 0
