import { setTimeout as sleep } from 'node:timers/promises'
import type { Secret } from '../shared/secret.ts'
import type { Log } from '../telemetry/log.ts'
import { spareMs } from './call-limits.ts'
import type { HttpClient } from './http-client.ts'
import type { CallContext } from './operator.ts'
import { wireRecord } from './wire-record.ts'

const tryMs = 3_000
const triesMax = 3
const pauseMs = 150
/** The lifetime of a token for which the operator states none. */
const lifeMsDefault = 60 * 60 * 1_000

export interface AccessTokens {
  /**
   * Returns a token that the operator should accept now; null if the operator refused to give one, or gave
   * none in the time that the call can wait.
   */
  get(ctx: CallContext): Promise<string | null>
  /** Forgets a token that the operator refused; a newer one stays. */
  drop(token: string): void
}

/**
 * Keeps the OAuth token of one operator (client credentials). Callers that need a token at the same time
 * share one request for it. The first caller after 80 % of the token's lifetime renews it. The request for a
 * token is tried up to three times, because it moves no money.
 */
export function createAccessTokens(
  settings: { tokenUrl: string; clientId: string; clientSecret: Secret },
  http: HttpClient,
  log: Log,
): AccessTokens {
  let kept: { value: string; renewAt: number; endsAt: number } | null = null
  let fetching: Promise<string | null> | null = null

  async function fetchToken(ctx: CallContext): Promise<string | null> {
    for (let count = 1; count <= triesMax; count++) {
      if (count > 1) await sleep(pauseMs * count, undefined, { ref: false })
      const result = await http.send(tokenRequest(settings), {
        deadline: new Date(Date.now() + tryMs),
        priority: ctx.priority,
        record: ctx.record,
      })
      if (result.kind !== 'answered') continue
      const body = wireRecord(result.json)
      const value = body?.text('access_token')
      if (result.status === 200 && value !== undefined) {
        const lifeMs = (body?.count('expires_in') ?? lifeMsDefault / 1_000) * 1_000
        kept = { value, renewAt: Date.now() + 0.8 * lifeMs, endsAt: Date.now() + lifeMs }
        return value
      }
      if (result.status === 400 || result.status === 401) {
        log.error(
          { status: result.status, error: body?.text('error') },
          'operator refused our client credentials',
        )
        return null
      }
    }
    return null
  }

  return {
    async get(ctx) {
      if (kept && Date.now() < kept.renewAt) return kept.value
      fetching ??= fetchToken(ctx).finally(() => (fetching = null))
      const renewed = await orNull(fetching, spareMs(ctx))
      return renewed ?? (kept && Date.now() < kept.endsAt ? kept.value : null)
    },
    drop(token) {
      if (kept?.value === token) kept = null
    },
  }
}

function tokenRequest(settings: { tokenUrl: string; clientId: string; clientSecret: Secret }) {
  const basic = Buffer.from(`${settings.clientId}:${settings.clientSecret.reveal()}`).toString('base64')
  return {
    operation: 'token',
    correlationId: '',
    method: 'POST' as const,
    url: new URL(settings.tokenUrl),
    headers: {
      authorization: `Basic ${basic}`,
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
    confidential: true,
  }
}

async function orNull<T>(promise: Promise<T>, waitMs: number): Promise<T | null> {
  const done = new AbortController()
  try {
    return await Promise.race([
      promise,
      sleep(Math.max(0, waitMs), null, { ref: false, signal: done.signal }),
    ])
  } finally {
    done.abort()
  }
}
