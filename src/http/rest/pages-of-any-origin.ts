import type { Context } from '../../context.ts'
import { apiVersion } from '../../shared/version.ts'
import type { Serve } from '../request.ts'

/** Lets a web page of any origin read an answer or a refusal, with the headers that say when to ask again. */
export function openToPages({ responseHeaders }: Context): void {
  responseHeaders.set('Access-Control-Allow-Origin', '*')
  responseHeaders.set('Access-Control-Expose-Headers', readableHeaders)
}

const readableHeaders = 'Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, X-API-Version'

/**
 * The request headers that a page may send. The star does not cover `Authorization`, and older browsers do
 * not know the star.
 */
const sendableHeaders = 'Authorization, Content-Type, Cache-Control, X-Request-Id, X-Requested-With, *'

/** The time for which a browser keeps the answer to a preflight. Choice: a day: the answer never changes. */
const preflightKeptS = 86_400

/**
 * Makes the handler of `OPTIONS` on a path that pages of any origin read: browsers ask so, without a
 * credential, before a request that has unusual headers (a preflight of the Fetch standard). It counts for no
 * rate limit, since it reads nothing.
 * @param allow the methods of the path, separated by commas
 */
export function answerPreflight(allow: string): Serve {
  return async ({ ctx, message: { headers }, response }) => {
    openToPages(ctx)
    const isPreflight = headers.origin !== undefined && headers['access-control-request-method'] !== undefined
    response.writeHead(204, {
      ...Object.fromEntries(ctx.responseHeaders),
      Allow: allow,
      'X-Request-Id': ctx.requestId,
      'X-API-Version': apiVersion,
      ...(isPreflight && {
        'Access-Control-Allow-Methods': allow,
        'Access-Control-Allow-Headers': sendableHeaders,
        'Access-Control-Max-Age': String(preflightKeptS),
      }),
    })
    response.end()
  }
}
