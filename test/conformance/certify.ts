import { faults } from './faults.ts'
import { playMoney, playQuery, playRefusal, playStatement, type Scene, Violation } from './play.ts'
import { type Cell, type Certificate, type Operation, type Subject, type Verdict } from './subject.ts'

/** Operators at once: each play waits for its own clock and sockets most of the time. */
const atOnce = 12

/**
 * Plays every operation of a driver under every fault that can happen to it, each at an operator of its own.
 * @returns a verdict for each pair; nothing is thrown for what the driver does
 */
export async function certify(subject: Subject): Promise<Certificate> {
  const pairs = faults.flatMap((fault) => fault.to.map((operation) => ({ fault, operation })))
  const cells: Cell[] = []
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

async function play(subject: Subject, fault: Scene['fault'], operation: Operation): Promise<Verdict> {
  const ground = await subject.open()
  const { driver } = ground
  const scene = { subject, ground, driver, fault }
  try {
    const verdict = await plays[operation](scene)
    return verdict ?? { kind: 'passed' }
  } catch (error) {
    if (error instanceof Violation) return { kind: 'failed', why: error.message }
    // Rule 1: a driver never throws.
    return {
      kind: 'failed',
      why: `it threw: ${error instanceof Error ? (error.stack ?? '') : String(error)}`,
    }
  } finally {
    await ground.close()
  }
}

const plays: Readonly<Record<Operation, (scene: Scene) => Promise<Verdict | null>>> = {
  collect: (scene) => (scene.fault.refuses ? playRefusal(scene, 'collect') : playMoney(scene, 'collect')),
  disburse: (scene) => (scene.fault.refuses ? playRefusal(scene, 'disburse') : playMoney(scene, 'disburse')),
  reverse: async (scene) =>
    scene.driver.capabilities.reversal === 'none'
      ? { kind: 'not offered', what: 'reverse' }
      : playMoney(scene, 'reverse'),
  query: playQuery,
  statement: playStatement,
}

/** What the contract leaves to a driver, and this one leaves out. */
async function optional(subject: Subject): Promise<string[]> {
  const ground = await subject.open()
  const { cancel, lookupParty, capabilities } = ground.driver
  await ground.close()
  return [
    ...(cancel && capabilities.cancel ? [] : ['to cancel a collection']),
    ...(lookupParty && capabilities.partyLookup ? [] : ['to look up who owns a number']),
    ...(capabilities.reversal === 'partial' ? [] : ['to reverse a part']),
  ]
}
