import type pg from 'pg'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import { RecentMap } from '../shared/recent-map.ts'
import { sqlFunction } from '../database/sql-function.ts'

const noteLastUse = sqlFunction('note_last_use', {
  takes: { credential: 'int', address: 'text?', everyMs: 'int', idleMs: 'int' },
  gives: 'void',
})

/** Notes when and from where each credential was last used: once a minute, and nobody waits for it. */
export class LastUses {
  readonly #pool: pg.Pool
  readonly #log: Log
  readonly #noted = new RecentMap<number, number>(limits.tokenCacheMax)

  constructor(pool: pg.Pool, log: Log) {
    this.#pool = pool
    this.#log = log
  }

  /** @param known when it was used, as far as this process has heard: other processes note it too */
  note(apiKeyId: number, known: Date | null, address: string | null): void {
    const now = Date.now()
    const at = Math.max(known?.getTime() ?? 0, this.#noted.get(apiKeyId) ?? 0)
    if (now - at < everyMs) return
    this.#noted.set(apiKeyId, now)
    noteLastUse(this.#pool, { credential: apiKeyId, address, everyMs, idleMs }).catch((error: unknown) =>
      this.#log.warn({ err: error }, 'the use of a credential was not noted'),
    )
  }
}

const { lastUseEveryMs: everyMs, sessionIdleMs: idleMs } = limits
