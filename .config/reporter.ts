import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from 'vitest/node'

const to = process.env['RUN_REPORT']

/**
 * Writes the results of a run to the file that `RUN_REPORT` names, a line of JSON at each begin and end of a
 * test file: they are there also when the run is killed (`test/kit/run-vitest.ts` reads them).
 */
export default class RunReporter implements Reporter {
  private root = ''

  onInit({ config }: { config: { root: string } }): void {
    this.root = config.root
  }

  onTestModuleStart({ moduleId }: TestModule): void {
    this.write({ begun: this.pathOf(moduleId) })
  }

  onTestModuleEnd(module: TestModule): void {
    const suites = [...module.children.allSuites()]
    this.write({
      ended: {
        path: this.pathOf(module.moduleId),
        ms: Math.round(durationOf(module)),
        tests: [...module.children.allTests()].map(testReport),
        // The errors of hooks, and of a file that does not load.
        errors: [module, ...suites].flatMap((each) => each.errors().map(textOf)),
      },
    })
  }

  onTestRunEnd(_modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    for (const error of errors) {
      const path = error['VITEST_TEST_PATH'] as string | undefined
      this.write({ unhandled: { path: path ? this.pathOf(path) : null, message: textOf(error) } })
    }
  }

  private pathOf(moduleId: string): string {
    return relative(this.root, moduleId).replaceAll('\\', '/')
  }

  private write(line: object): void {
    if (to) appendFileSync(to, `${JSON.stringify(line)}\n`)
  }
}

function testReport(test: TestCase) {
  const { state, errors = [] } = test.result()
  return { name: nameOf(test), state, message: errors.map(textOf).join('\n') }
}

/** The name with those of its groups before it, as `-t` reads it. */
function nameOf({ name, parent }: TestCase | TestSuite): string {
  return parent.type === 'suite' ? `${nameOf(parent)} ${name}` : name
}

function durationOf(module: TestModule): number {
  const { duration, setupDuration, collectDuration, prepareDuration } = module.diagnostic()
  return duration + setupDuration + collectDuration + prepareDuration
}

/** The message, and what was expected. */
function textOf({ message, diff }: SerializedError): string {
  return [message, diff].filter(Boolean).join('\n')
}
