import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { locks } from '../../src/database/locks.ts'

const numbers = Object.values(locks) as number[]

test('each advisory lock has a number of its own', () => {
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('the SQL functions take locks of the table only, and the code takes them by name', () => {
  const taken = globSync('src/**/*.sql').flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/advisory_\w*lock\w*\(\s*(\d+)/g)].map(([, number]) =>
      Number(number),
    ),
  )
  expect(taken.length).toBeGreaterThan(10)
  expect(taken.filter((number) => !numbers.includes(number))).toEqual([])
  const spelled = globSync('src/**/*.ts').filter(
    (path) =>
      !path.endsWith('database/locks.ts') && /7270_?7\d{3}|72_707_\d{3}/.test(readFileSync(path, 'utf8')),
  )
  expect(spelled).toEqual([])
})
