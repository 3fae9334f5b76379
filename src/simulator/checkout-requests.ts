import type { SimulatorCall, Reply } from './http.ts'
import { json, text } from './http.ts'

/** An error that stops a request with an error answer of the checkout protocol. */
export class CheckoutFault extends Error {
  readonly reply: Reply

  constructor(status: number, code: string, message: string) {
    super(message)
    this.reply = checkoutFault(status, code, message)
  }
}

/** Makes an error answer of the checkout protocol. */
export function checkoutFault(status: number, code: string, message: string): Reply {
  return json(status, { code, message })
}

export function readBody(call: SimulatorCall): Readonly<Record<string, unknown>> {
  const body = call.object()
  if (body) return body
  throw new CheckoutFault(400, 'request-validation-error', 'The body must be a JSON object.')
}

/** Reads an amount in whole francs, and checks its currency. */
export function readAmount(body: Readonly<Record<string, unknown>>, field: string): bigint {
  if (text(body, 'currency') !== 'XOF')
    throw new CheckoutFault(400, 'currency-mismatch', 'currency: must be XOF.')
  const value = text(body, field)
  if (/^[1-9]\d{0,11}$/.test(value)) return BigInt(value)
  throw new CheckoutFault(422, 'request-validation-error', `${field}: a text of whole francs above zero.`)
}

/** Reads a text of a bounded length; empty where it is absent. */
export function readText(body: Readonly<Record<string, unknown>>, field: string, most: number): string {
  const value = text(body, field)
  if (value.length <= most) return value
  throw new CheckoutFault(422, 'request-validation-error', `${field}: at most ${most} characters.`)
}
