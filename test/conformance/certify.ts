import { faults } from './faults.ts'
import { playMoney, playQuery, playRefusal, playStatement, type Trial, ContractViolation } from './play.ts'
import {
  type ConformanceCell,
  type Certificate,
  type DriverOperation,
  type DriverUnderTest,
  type ConformanceVerdict,
} from './subject.ts'

/** Operators at once: each trial waits for its own clock and sockets most of the time. */
const atOnce = 12

/**
 * Plays every operation of a driver under every fault that can happen to it, each at an operator of its own.
 * @returns a verdict for each pair; an error of the driver is a verdict, not an exception
 */
export async function certify(subject: DriverUnderTest): Promise<Certificate> {
  const pairs = faults.flatMap((fault) => fault.to.map((operation) => ({ fault, operation })))
  const cells: ConformanceCell[] = []
  let next = 0
  const work = async () => {
    for (let pair = pairs[next++]; pair; pair = pairs[next++]) {
      const { fault, operation } = pair
      cells.push({ fault: fault.name, operation, verdict: await play(subject, fault, operation) })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return { subject: subject.name, cells, notOffered: await optional(subject) }
}

async function play(
  subject: DriverUnderTest,
  fault: Trial['fault'],
  operation: DriverOperation,
): Promise<ConformanceVerdict> {
  const fixture = await subject.open()
  const { driver } = fixture
  const trial = { subject, fixture, driver, fault }
  try {
    const verdict = await plays[operation](trial)
    return verdict ?? { kind: 'passed' }
  } catch (error) {
    if (error instanceof ContractViolation) return { kind: 'failed', why: error.message }
    // Rule 1: a driver never throws.
    return {
      kind: 'failed',
      why: `it threw: ${error instanceof Error ? (error.stack ?? '') : String(error)}`,
    }
  } finally {
    await fixture.close()
  }
}

const plays: Readonly<Record<DriverOperation, (trial: Trial) => Promise<ConformanceVerdict | null>>> = {
  collect: (trial) => (trial.fault.refuses ? playRefusal(trial, 'collect') : playMoney(trial, 'collect')),
  disburse: (trial) => (trial.fault.refuses ? playRefusal(trial, 'disburse') : playMoney(trial, 'disburse')),
  reverse: async (trial) =>
    trial.driver.capabilities.reversal === 'none'
      ? { kind: 'not offered', what: 'reverse' }
      : playMoney(trial, 'reverse'),
  query: playQuery,
  statement: playStatement,
}

/** Lists the optional parts of the contract that this driver leaves out. */
async function optional(subject: DriverUnderTest): Promise<string[]> {
  const fixture = await subject.open()
  const { cancel, lookupParty, capabilities } = fixture.driver
  await fixture.close()
  return [
    ...(cancel && capabilities.cancel ? [] : ['to cancel a collection']),
    ...(lookupParty && capabilities.partyLookup ? [] : ['to look up who owns a number']),
    ...(capabilities.reversal === 'partial' ? [] : ['to reverse a part']),
  ]
}
