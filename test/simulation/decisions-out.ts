import { expect } from 'vitest'
import { decideDifference } from '../../src/resources/differences/decide.ts'
import { call, command, idOf, type OutCommand } from './acts-out.ts'

/** Two people decide about the rest of a payment out that the operator did not state. */
export function rule(at: number, verdict: 'credited' | 'paid'): OutCommand {
  return command(`${verdict}(${at})`, async (model, real) => {
    const all = model.outs.filter(({ stated, amount: asked }) => stated < asked)
    const out = all[at % Math.max(1, all.length)]
    if (!out) return
    const { rows } = await real.environment.db.owner.query<{ id: number }>(
      `SELECT id FROM settlement_exception WHERE ${out.kind === 'payout' ? 'payout' : 'transaction'}_id = $1`,
      [await idOf(real, out)],
    )
    const raw = { id: String(rows[0]?.id), reason: 'seen' }
    const answer = await call(real, out.merchantIndex, 'normal', async ({ database }) => {
      await decideDifference({ database }, verdict, { ...raw, by: 'Moussa' })
      const { state } = await decideDifference({ database }, verdict, { ...raw, by: 'Awa' })
      return { status: state }
    })
    expect(answer).toBe(model.rule(out, verdict) ? verdict : 'STATE_CONFLICT')
  })
}
