import { expect, test } from 'vitest'
import { defineStates } from '../../src/shared/states.ts'

const door = defineStates('door', 'closed', {
  closed: { open: 'a person pushed', walled: 'bricks' },
  open: { closed: 'the wind' },
  walled: {},
})

test('a lifecycle has its statuses and its first status', () => {
  expect(door.statuses).toEqual(['closed', 'open', 'walled'])
  expect(door.initial).toBe('closed')
  expect(door.name).toBe('door')
})

test('a lifecycle allows exactly the moves of the table', () => {
  const allowed = door.statuses.flatMap((from) =>
    door.statuses.filter((to) => door.canMove(from, to)).map((to) => `${from} → ${to}`),
  )
  expect(allowed).toEqual(['closed → open', 'closed → walled', 'open → closed'])
})

test('no status moves to itself', () => {
  for (const status of door.statuses) expect(door.canMove(status, status)).toBe(false)
})

test.each(['__proto__', 'constructor', 'toString'])('no move leads to %s', (key) => {
  expect(door.canMove('closed', key as 'open')).toBe(false)
})
