import { limits } from '../../src/shared/limits.ts'
import { patienceMs } from '../kit/eventually.ts'

// Loaded into the service before its own modules (`node --import`): on a busy machine its running requests
// have longer to end.
Object.assign(limits, { drainMs: patienceMs })
