import { expect, test } from 'vitest'
import type { Context } from '../src/context.ts'
import { enter, skip, type Steps } from '../src/enter.ts'

/** Enters by steps that write down their names, of which `refuses` throws. @returns the names in order */
async function enterBy(refuses: string | null): Promise<string[]> {
  const passed: string[] = []
  const step = (name: string) => (ctx: Context) => {
    passed.push(name)
    if (name === refuses) throw new Error(name)
    return { ...ctx, requestId: `${ctx.requestId} ${name}` }
  }
  const steps: Steps = {
    turn: Object.assign(step('turn'), {
      setHeaders: ({ requestId }: Context) => passed.push(`setHeaders:${requestId}`),
    }),
    right: step('right'),
    caller: step('caller'),
    room: step('room'),
  }
  const entered = enter({ requestId: 'request' } as Context, steps)
  await entered.then(
    ({ requestId }) => passed.push(requestId),
    ({ message }: Error) => passed.push(`refused:${message}`),
  )
  return passed
}

test('steps come in one order, each with the context that the one before gave', async () => {
  const [room, caller, right, turn, last] = await enterBy(null)
  expect([room, caller, right, turn]).toEqual(['room', 'caller', 'right', 'turn'])
  expect(last).toBe('request room caller turn')
})

test.each([
  ['room', ['room', 'refused:room']],
  ['caller', ['room', 'caller', 'setHeaders:request room', 'refused:caller']],
  ['right', ['room', 'caller', 'right', 'setHeaders:request room caller', 'refused:right']],
  ['turn', ['room', 'caller', 'right', 'turn', 'refused:turn']],
])(
  'a request that %s refuses goes no further, and counts only where its turn was asked',
  async (at, passed) => {
    expect(await enterBy(at)).toEqual(passed)
  },
)

test('a step that is left out gives the context as it was', () => {
  const ctx = { requestId: 'request' } as Context
  expect(skip('a reason')(ctx)).toBe(ctx)
})
