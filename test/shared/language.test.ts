import { expect, test } from 'vitest'
import { preferredLanguage } from '../../src/shared/language.ts'

test.each([
  ['fr', 'fr'],
  ['FR-ml', 'fr'],
  ['bm,fr;q=0.9,en;q=0.5', 'fr'],
  ['en;q=0.5, fr ; q=0.9', 'fr'],
  ['en,fr', 'en'],
  ['fr;q=0,en;q=0.1', 'en'],
  ['fr;q=x', 'neither'],
  ['fra, end', 'neither'],
  ['*', 'neither'],
  ['', 'neither'],
])('a client that asks for %s gets %s', (requested, language) => {
  expect(preferredLanguage(requested, 'neither')).toBe(language)
})
