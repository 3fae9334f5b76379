import { runCommandLine } from '../../src/terminal/command-line.ts'
import type { EndedProgram, Home } from './program.ts'

/** Runs an administration command in this process; `admin` of `program.ts` starts one of its own. */
export async function adminHere(home: Pick<Home, 'environment'>, ...args: string[]): Promise<EndedProgram> {
  const said = { stdout: '', stderr: '' }
  const streamOf = (name: 'stdout' | 'stderr') => ({ write: (text: string) => void (said[name] += text) })
  const code = await runCommandLine(args, {
    stdout: streamOf('stdout'),
    stderr: streamOf('stderr'),
    env: home.environment,
  })
  return { code, ...said }
}
