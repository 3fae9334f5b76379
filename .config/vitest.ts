import { globSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// A name says where a file belongs. `*.test.ts`: `npm test`, which decides. `*.check.ts`: rules of the
// sources, in `npm run check`. `*.soak.ts`: searches by chance and measures by the clock, in `npm run soak`.

/** The folders of whole programs, browsers and searches take longest: begun last they would run alone. */
const slowFolders = ['test/crash/', 'test/terminal/', 'test/pages/', 'test/simulation/', 'test/fuzz/']

const root = join(import.meta.dirname, '..')
// Each worker is a process, and many start programs: what they load is compiled once for all.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/merchant-payments/compiled')

/** The files of `npm test`, and of the other kinds where the command line names one. */
function selectFiles(): string[] {
  const isNamed = (kind: string) => process.argv.some((argument) => argument.endsWith(`.${kind}.ts`))
  const kinds = ['test', ...['soak', 'check'].filter(isNamed)]
  return kinds.flatMap((kind) => globSync(`test/**/*.${kind}.ts`, { cwd: root }))
}

/**
 * Whether a file changes modules for good, or measures its process: it has a process of its own. The others
 * share processes and the modules in them, whose loading took half of the time; they change bounds by
 * `useBounds`, which restores them.
 */
function isAlone(path: string): boolean {
  const changes = /vi\.mock\(|Object\.assign\((limits|\w+Bounds)\b/
  const measures = /memoryUsage\(|monitorEventLoopDelay\(|filesCrossed\(|\b(thread|process)Ms\(/
  const text = readFileSync(join(root, path), 'utf8')
  return changes.test(text) || measures.test(text)
}

/** The slow folders first, then the files that are alone, then the others; the larger ones first. */
class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const path = relative(root, moduleId)
      const folder = slowFolders.findIndex((name) => path.startsWith(name))
      if (folder >= 0) return folder
      // A process that others share ends where one that is alone comes in between.
      return slowFolders.length + (isAlone(path) ? 0 : 1)
    }
    const size = ({ moduleId }: TestSpecification) => statSync(moduleId).size
    return Promise.resolve(files.toSorted((a, b) => place(a) - place(b) || size(b) - size(a)))
  }
}

function project(mode: string, name: string, isolate: boolean, include: string[]) {
  return {
    root,
    // Otherwise vite and Node each load a copy of graphql, and its `instanceof` checks fail between them.
    ssr: { resolve: { conditions: ['module', 'node'], externalConditions: ['node', 'module-sync'] } },
    test: {
      name,
      isolate,
      include,
      env: { TEST_STRENGTH: mode },
      setupFiles: ['test/kit/setup.ts'],
      pool: 'forks' as const,
      // Long, for a machine that is busy with other things: above the patience of `eventually`.
      testTimeout: 180_000,
      hookTimeout: 180_000,
    },
  }
}

export default defineConfig(({ mode }) => {
  const files = selectFiles()
  return {
    root,
    test: {
      projects: [
        project(mode, 'alone', true, files.filter(isAlone)),
        project(
          mode,
          'together',
          false,
          files.filter((path) => !isAlone(path)),
        ),
      ],
      globalSetup: ['test/kit/global-setup.ts'],
      sequence: { sequencer: LongestFirst },
      // A third of what they do is waiting: four keep two cores busy, and more only contend.
      maxWorkers: 4,
      coverage: {
        provider: 'v8',
        include: ['src/**'],
        exclude: ['src/dashboard/**'],
        reportsDirectory: 'node_modules/.cache/merchant-payments/coverage',
      },
    },
  }
})
