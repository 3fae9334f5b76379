import { expect, test } from 'vitest'
import { wireRecord } from '../../src/operators/wire-record.ts'

test.each([
  ['2026-01-31T10:00:00.123Z', '2026-01-31T10:00:00.123Z'],
  ['2026-01-31T10:00:00+01:00', '2026-01-31T09:00:00.000Z'],
  ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999Z'],
  // These would be kept as evidence, and PostgreSQL could not read them again.
  ['+010000-01-01T00:00:00Z', undefined],
  ['9999-12-31T23:59:59-01:00', undefined],
  ['+275760-09-13T00:00:00Z', undefined],
  ['0000-12-31T23:59:59Z', undefined],
  ['-000001-01-01T00:00:00Z', undefined],
  ['soon', undefined],
])('the time %s of an operator is %s', (text, iso) => {
  expect(wireRecord({ At: text })?.date('at')?.toISOString()).toBe(iso)
})
