import { actingAs, type Context } from './context.ts'
import { authenticate } from './identity/authenticate.ts'
import type { Priority } from './limits/admission.ts'

/** One step of a request: gives the context to go on with, or throws why the request may not go on. */
export type EnterStep = (ctx: Context) => Context | Promise<Context>

/** What a request passes before anything runs for it. A door that leaves a step out says why: `skip`. */
export interface Steps {
  /** Whether there is room for a request of its priority. */
  room: EnterStep
  /** Who calls. */
  caller: EnterStep
  /** Whether the caller may do this. */
  right: EnterStep
  /** Whether the caller asks too often. */
  turn: Turn
}

/** The step that counts a request. */
interface Turn extends EnterStep {
  /** Tells a caller that an earlier step turned away how many requests may come; counts nothing. */
  tell?: (ctx: Context) => void
}

/**
 * The one sequence of steps, whatever the door. Then the body is read, and the work takes its slot
 * (`ctx.admission.run`): a body that comes slowly holds none. GraphQL passes the sequence twice, because its
 * body says what the operation needs: `caller` before the body is read, `right` and `turn` after it.
 * @returns the context of the caller
 * @throws DomainError OVERLOADED, UNAUTHENTICATED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED, what `right`
 *   throws, RATE_LIMITED, in this order
 */
export async function enter(ctx: Context, { room, caller, right, turn }: Steps): Promise<Context> {
  let known = await room(ctx)
  try {
    known = await caller(known)
    await right(known)
  } catch (error) {
    turn.tell?.(known)
    throw error
  }
  return turn(known)
}

/** Leaves a step out. @param _reason why this door has no use for it */
export function skip(_reason: string): EnterStep {
  return (ctx) => ctx
}

/** Refuses a request for which there is no room. @throws DomainError OVERLOADED */
export function hasRoom(priority: Priority): EnterStep {
  return (ctx) => {
    ctx.admission.check(priority)
    return ctx
  }
}

/**
 * Signs the caller in by its Authorization header; without one it stays nobody.
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE, ADDRESS_NOT_ALLOWED
 */
export function signIn(authorization: string | undefined): EnterStep {
  return async (ctx) => {
    const { access, clientAddress } = ctx
    return actingAs(ctx, await authenticate(access, { authorization, clientAddress }))
  }
}

/** Judges the caller. @param check throws where the caller may not */
export function mayAsk(check: (actor: Context['actor']) => void): EnterStep {
  return (ctx) => {
    check(ctx.actor)
    return ctx
  }
}

/**
 * Counts a request, by token and merchant, or by address where nobody is signed in. Whatever comes of it, the
 * answer says how many more may come.
 * @param name of what is asked for, where addresses are counted
 * @throws DomainError RATE_LIMITED
 */
export function takesTurn(kind: 'read' | 'write', name: string): Turn {
  const take = async (ctx: Context) => {
    await ctx.requestLimits.takeTurn(ctx, kind, name)
    return ctx
  }
  return Object.assign(take, { tell: (ctx: Context) => ctx.requestLimits.setTurnHeaders(ctx, kind, name) })
}

/** Counts a look at a payer's page, or a form of one, by address. @throws DomainError RATE_LIMITED */
export function takesPage(kind: 'view' | 'form'): EnterStep {
  return async (ctx) => {
    await ctx.requestLimits.takePage(ctx, kind)
    return ctx
  }
}
