import { describe, expect, test } from 'vitest'
import {
  accepted,
  answers,
  ask,
  credited,
  day,
  hour,
  type Opened,
  scripted,
  script,
  second,
  seconds,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

useScriptedOperator()

describe('after the end', () => {
  async function over(): Promise<Opened> {
    const opened = await accepted(day + second)
    expect((await ask(opened, answers.pending)).status).toBe('expired')
    return opened
  }

  test('late money is credited once and known as late', async () => {
    const opened = await over()
    await scripted.clock.advance(3 * hour)
    expect((await ask(opened, answers.settled)).status).toBe('success')
    expect(await stands(opened)).toMatchObject({
      status: 'success',
      late: true,
      state: 'settled',
      nextS: null,
    })
    expect(await credited()).toBe(5_000n)
  })

  test.each(['pending', 'absent'] as const)('%s: asked again in an hour', async (kind) => {
    const opened = await over()
    await ask(opened, answers[kind])
    expect(await stands(opened)).toMatchObject({
      status: 'expired',
      state: 'accepted',
      nextS: seconds(3_600),
    })
  })

  test.each(['pending', 'absent'] as const)('%s after a week: asked no more', async (kind) => {
    const opened = await over()
    await scripted.clock.advance(7 * day + hour)
    await ask(opened, answers[kind])
    expect(await stands(opened)).toMatchObject({ status: 'expired', state: 'closed', nextS: null })
  })

  test('refused: asked no more', async () => {
    const opened = await over()
    expect((await ask(opened, answers.refused)).status).toBe('expired')
    expect(await stands(opened)).toMatchObject({ status: 'expired', state: 'closed', nextS: null })
  })

  test.each([
    ['refused', null],
    ['absent', null],
    ['unreachable', seconds(2, 8)],
    // Still open at the operator: it may yet be paid.
    ['pending', seconds(3_600)],
  ] as const)('a callback about a failed payment leads to a question: %s', async (kind, nextS) => {
    const opened = await accepted()
    await ask(opened, answers.refused)
    await scripted.db.owner.query('UPDATE operator_request SET next_check_at = service_now() WHERE id = $1', [
      opened.requestId,
    ])
    expect((await ask(opened, answers[kind])).status).toBe('failed')
    expect(await stands(opened)).toMatchObject({ status: 'failed', state: 'refused', nextS })
    expect(script.sent).toEqual([])
  })

  test('a failed payment that is still open at the operator is asked about hourly, for a week', async () => {
    const opened = await accepted()
    await ask(opened, answers.refused)
    await scripted.db.owner.query('UPDATE operator_request SET next_check_at = service_now() WHERE id = $1', [
      opened.requestId,
    ])
    for (let hours = 0; hours < 3; hours += 1) {
      await ask(opened, answers.pending)
      expect(await stands(opened)).toMatchObject({
        status: 'failed',
        state: 'refused',
        nextS: seconds(3_600),
      })
      await scripted.clock.advance(hour)
    }
    await scripted.clock.advance(8 * day)
    await ask(opened, answers.pending)
    expect(await stands(opened)).toMatchObject({ status: 'failed', state: 'refused', nextS: null })
  })

  test('a failed payment that the operator proves paid is credited', async () => {
    const opened = await accepted()
    await ask(opened, answers.refused)
    await scripted.db.owner.query('UPDATE operator_request SET next_check_at = service_now() WHERE id = $1', [
      opened.requestId,
    ])
    await ask(opened, answers.settled)
    expect(await stands(opened)).toMatchObject({ status: 'success', late: true, state: 'settled' })
    expect(await credited()).toBe(5_000n)
  })
})
