import { expect, onTestFinished, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import { call, newHome, startProgram } from '../kit/program.ts'

// How long starts and stops take. `start.test.ts` proves what they do.

test('a second start is quick, and so is every stop', async () => {
  const home = await newHome()
  onTestFinished(() => home.remove())
  const warm: number[] = []
  for (let life = 0; life < 4; life += 1) {
    const begun = performance.now()
    const starting = startProgram(home)
    const ask = () => call(home, 'GET', '/status').catch(() => null)
    expect((await eventuallyGives(ask, (answer) => answer !== null))?.status).toBe(200)
    if (life > 0) warm.push(performance.now() - begun)
    const service = await starting
    onTestFinished(() => service.destroy())
    const ending = performance.now()
    expect(await service.end('SIGTERM')).toBe(0)
    expect(performance.now() - ending).toBeLessThan(10_000)
  }
  const median = warm.toSorted((a, b) => a - b)[1]
  process.stdout.write(`warm starts: ${warm.map(Math.round).join(', ')} ms\n`)
  // Alone it takes about 2 s; beside other tests on two cores up to 5.
  expect(median).toBeLessThan(10_000)
})
