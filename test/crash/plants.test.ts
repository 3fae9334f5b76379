import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mutants, mutatedTree } from './mutants.ts'

const root = join(import.meta.dirname, '../..')

test.each(mutants)('the planted bug "$name" fits the sources', (mutant) => {
  expect(() => mutatedTree(root, mutant).remove()).not.toThrow()
})
