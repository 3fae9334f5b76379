import { afterAll, describe, expect, test } from 'vitest'
import { startAtNoon } from '../kit/noon.ts'
import { certify } from './certify.ts'
import type { DriverUnderTest } from './subject.ts'
import { subjects } from './subjects.ts'

/** Certifies a driver in one test; its failure lists every operation and fault that went wrong. */
export function describeDriver(subject: DriverUnderTest, leftOut: readonly string[]): void {
  test.concurrent(`${subject.name} fulfils the contract under every fault`, async () => {
    const { cells, notOffered } = await certify(subject)
    const wrong = cells.flatMap(({ fault, operation, verdict }) =>
      verdict.kind === 'failed' ? [`${operation} under "${fault}": ${verdict.why}`] : [],
    )
    expect(wrong).toEqual([])
    // The driver leaves out the listed parts only.
    expect(cells.filter(({ verdict }) => verdict.kind === 'not offered')).toEqual([])
    expect(notOffered).toEqual(leftOut)
    const passed = cells.filter(({ verdict }) => verdict.kind === 'passed')
    expect(passed.length).toBeGreaterThanOrEqual(100)
  })
}

// The statement of a day is among the operations.
startAtNoon(afterAll)

/** The parts of the contract that a driver leaves out, by the name of the subject. */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  'checkout-session (OperatorB)': ['to look up who owns a number', 'to reverse a part'],
  'gsma-mm 1.1, at once (OperatorD)': ['to cancel a collection'],
}

describe('each driver is certified under every fault, at an operator of its own', () => {
  for (const subject of subjects) {
    describeDriver(subject, leftOut[subject.name] ?? [])
  }
})
