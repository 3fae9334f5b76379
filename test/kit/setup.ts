import fc from 'fast-check'
import { restartCustomers } from './customer-numbers.ts'
import { lengthenWaits, narrowPools } from './patience.ts'
import { seed } from './seeds.ts'
import { restoreBounds } from './use-bounds.ts'

// Vitest runs this module before each test file, also where files share a process.
restoreBounds()
lengthenWaits()
narrowPools()
restartCustomers()
fc.configureGlobal({ seed })
