import { type Profiler, Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'
import { relative } from 'node:path'
import { importsOf, readSources, root } from './sources.ts'

/**
 * Runs `act` several times and finds the files of `src/` of which a function ran each time, as V8 counts
 * calls. Timers and jobs of this process run beside some of the runs only.
 * @returns paths from the top of the repository
 */
export async function filesCrossed(act: () => Promise<unknown>, runs = 10): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const crossed: Set<string>[] = []
  for (let run = 0; run < runs; run += 1) {
    // Each take counts anew.
    await session.post('Profiler.takePreciseCoverage')
    await act()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    crossed.push(new Set(result.filter((file) => file.functions.some(hasRun)).map(({ url }) => pathOf(url))))
  }
  await session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  return [...(crossed[0] ?? [])].filter((path) => crossed.every((run) => run.has(path)))
}

/** Vitest makes each export a function `get`, which runs where only a constant of the file is read. */
function hasRun({ functionName, ranges }: Profiler.FunctionCoverage): boolean {
  return functionName !== 'get' && ranges.some(({ count }) => count > 0)
}

function pathOf(url: string): string {
  return relative(root, url.startsWith('file:') ? fileURLToPath(url) : url)
}

/**
 * Leaves out the words of the domain (`shared/`), and pure helpers, which load no other file of `src/`. A
 * type that is imported loads nothing.
 */
export function stopsOf(paths: Iterable<string>): string[] {
  const sources = new Map(readSources().map(({ path, text }) => [path, text]))
  const isServer = (path: string) => /^src\/(?!shared\/|simulator\/)/.test(path)
  return [...paths]
    .filter((path) => isServer(path) && importsOf(path, withoutTypes(sources.get(path) ?? '')).some(isServer))
    .toSorted()
}

function withoutTypes(text: string): string {
  return text.replaceAll(/^import type\b[^'"]*['"][^'"]+['"]$/gm, '')
}
