import { actingAs, type Context, type SessionCookie } from './context.ts'
import { authenticate } from './identity/callers/authenticate.ts'
import type { Priority } from './limits/admission.ts'
import { DomainError } from './shared/errors.ts'

/** One step of a request: returns the context for the next step, or throws the reason of the refusal. */
export type EnterStep = (ctx: Context) => Context | Promise<Context>

/**
 * The checks that a request passes before its work begins. A handler that leaves one out says why: `skip`.
 */
export interface Steps {
  /** Refuses the request where the service has no room for its priority. */
  room: EnterStep
  /** Finds out who the caller is. */
  caller: EnterStep
  /** Refuses a caller that lacks the right. */
  right: EnterStep
  /** Refuses a caller that asks too often. */
  turn: Turn
}

/** The step that counts a request and refuses one too many. */
interface Turn extends EnterStep {
  /** Sets the headers with the caller's remaining requests where an earlier step refused. Counts nothing. */
  setHeaders?: (ctx: Context) => void
}

/**
 * Runs the steps in the same order for every handler. The handler then reads the body, and only after that
 * the work takes its slot (`ctx.admission.run`): a body that arrives slowly holds no slot. GraphQL runs the
 * sequence twice, because only its body says what the operation needs: `caller` before the body is read,
 * `right` and `turn` after it. It looks for room only when the operation runs.
 * @returns the context of the caller
 * @throws DomainError OVERLOADED, UNAUTHENTICATED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED, the errors of
 *   `right`, RATE_LIMITED, in this order
 */
export async function enter(ctx: Context, { room, caller, right, turn }: Steps): Promise<Context> {
  let known = await room(ctx)
  try {
    known = await caller(known)
    await right(known)
  } catch (error) {
    turn.setHeaders?.(known)
    throw error
  }
  return turn(known)
}

/** Makes a step that does nothing. @param _reason why the handler does not need the step */
export function skip(_reason: string): EnterStep {
  return (ctx) => ctx
}

/**
 * Makes the step that refuses a request while the service has no room for it.
 * @throws DomainError OVERLOADED
 */
export function hasRoom(priority: Priority): EnterStep {
  return (ctx) => {
    ctx.admission.check(priority)
    return ctx
  }
}

/**
 * Makes the step that signs the caller in by the Authorization header, or without one by the session cookie.
 * A caller without either stays anonymous.
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED
 */
export function signIn(authorization: string | undefined): EnterStep {
  return async (ctx) => {
    const { access, clientAddress, sessionCookie } = ctx
    if (authorization === undefined && sessionCookie?.token) return bySession(ctx, sessionCookie)
    return actingAs(ctx, await authenticate(access, { authorization, clientAddress }))
  }
}

/**
 * Signs the caller in by the cookie. A cookie that may not be used leaves the caller anonymous: the page
 * cannot remove it, and it would hinder the next sign-in. So does a cookie of another member than the page
 * shows, after a sign-in in another window: the page would show the money of one account under another name.
 */
async function bySession(ctx: Context, { token, memberId }: SessionCookie): Promise<Context> {
  const { access, clientAddress } = ctx
  try {
    const actor = await authenticate(access, { authorization: `Bearer ${token}`, clientAddress })
    const isOther = memberId !== null && memberId !== String(actor?.memberId)
    return isOther ? ctx : actingAs(ctx, actor)
  } catch (error) {
    if (error instanceof DomainError) return ctx
    throw error
  }
}

/** Makes the step that checks the caller's right. @param check throws where the caller lacks the right */
export function mayAsk(check: (actor: Context['actor']) => void): EnterStep {
  return (ctx) => {
    check(ctx.actor)
    return ctx
  }
}

/**
 * Makes the step that counts a request: by token and merchant, or by address for an anonymous caller. The
 * headers of the answer say how many requests remain, also when the request is refused.
 * @param name the name under which an anonymous caller's requests are counted
 * @throws DomainError RATE_LIMITED
 */
export function takesTurn(kind: 'read' | 'write', name: string): Turn {
  const take = async (ctx: Context) => {
    await ctx.requestLimits.takeTurn(ctx, kind, name)
    return ctx
  }
  return Object.assign(take, {
    setHeaders: (ctx: Context) => ctx.requestLimits.setTurnHeaders(ctx, kind, name),
  })
}

/**
 * Makes the step that counts, by address, a view of a payer's page or a form sent from it.
 * @throws DomainError RATE_LIMITED
 */
export function takesPage(kind: 'view' | 'form'): EnterStep {
  return async (ctx) => {
    await ctx.requestLimits.takePage(ctx, kind)
    return ctx
  }
}
