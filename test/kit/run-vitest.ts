import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The results of one test file. */
export interface FileReport {
  /** From the top of the repository. */
  path: string
  ms: number
  tests: readonly { name: string; state: 'passed' | 'failed' | 'skipped' | 'pending'; message: string }[]
  /** The errors of hooks, and of a file that did not load. */
  errors: readonly string[]
}

export interface RunReport {
  /** Null where a signal ended the run. */
  code: number | null
  files: readonly FileReport[]
  /** Files that were begun and did not end. */
  unfinished: readonly string[]
  /** The errors outside of every test; the path is null if the file is not known. */
  unhandled: readonly { path: string | null; message: string }[]
  /** The end of the output. */
  printed: string
  ms: number
}

const printedMax = 4_000

/**
 * Runs test files in processes of their own.
 * @param options.args of vitest: files, `--mode=soak`, `-t`
 * @param options.limitMs the run is killed after it, with all that it started
 * @param options.shows whether its output goes to ours
 */
export async function runVitest(options: {
  tree: string
  args: readonly string[]
  environment?: Record<string, string>
  limitMs: number
  signal?: AbortSignal
  shows?: boolean
}): Promise<RunReport> {
  const { tree, args, environment = {}, limitMs, signal, shows = false } = options
  const begun = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-run-'))
  const report = join(folder, 'report.jsonl')
  const reporters = [...(shows ? ['default'] : []), './.config/reporter.ts']
  const child = spawn(
    process.execPath,
    [
      join(tree, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--config=.config/vitest.ts',
      ...reporters.map((name) => `--reporter=${name}`),
      ...args,
    ],
    {
      cwd: tree,
      env: { ...process.env, ...environment, RUN_REPORT: report },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own: the processes that the tests started end with it.
      detached: true,
    },
  )
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      if (shows) process.stdout.write(chunk)
      printed = (printed + String(chunk)).slice(-printedMax)
    })
  }
  const end = () => endGroup(child.pid)
  const timer = setTimeout(end, limitMs)
  signal?.addEventListener('abort', end, { once: true })
  try {
    const [code] = (await once(child, 'exit')) as [number | null]
    return { code, ...readReport(report), printed, ms: performance.now() - begun }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
    end()
    rmSync(folder, { recursive: true, force: true })
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}

/** Reads the results that a run wrote so far: none if it was killed before its first file. */
function readReport(path: string): Pick<RunReport, 'files' | 'unfinished' | 'unhandled'> {
  type Line = { begun: string } | { ended: FileReport } | { unhandled: RunReport['unhandled'][number] }
  const lines = readLines(path).map((line) => JSON.parse(line) as Line)
  const files = lines.flatMap((line) => ('ended' in line ? [line.ended] : []))
  const ended = new Set(files.map((file) => file.path))
  return {
    files,
    unfinished: lines.flatMap((line) => ('begun' in line && !ended.has(line.begun) ? [line.begun] : [])),
    unhandled: lines.flatMap((line) => ('unhandled' in line ? [line.unhandled] : [])),
  }
}

/** The whole lines: a run that was killed may have left half a line. */
function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch {
    return []
  }
}
