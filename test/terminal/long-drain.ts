import { drainBounds } from '../../src/http/server.ts'
import { limits } from '../../src/shared/limits.ts'
import { patienceMs } from '../kit/eventually.ts'

// Loaded into the service before its own modules (`node --import`): on a busy machine its running requests
// have longer to end, and its clients longer to learn that their connection ends.
Object.assign(limits, { drainMs: patienceMs })
Object.assign(drainBounds, { noticeMs: 10_000 })
