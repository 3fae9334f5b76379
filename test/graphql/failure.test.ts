import { expect, test } from 'vitest'
import { failureOf } from '../../src/operators/failure-reasons.ts'

test('a reason is a row of the table; a reason removed from the table becomes UNSPECIFIED', () => {
  expect(['PAYEE_NOT_FOUND', 'GONE', null].map(failureOf)).toEqual(['PAYEE_NOT_FOUND', 'UNSPECIFIED', null])
})
