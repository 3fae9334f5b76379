import { join } from 'node:path'
import { expect, test } from 'vitest'
import { plants, plantTree } from './plants.ts'

const root = join(import.meta.dirname, '../..')

test.each(plants)('the planted bug "$name" fits the sources of today', (plant) => {
  expect(() => plantTree(root, plant).remove()).not.toThrow()
})
