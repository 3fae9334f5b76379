import { z } from 'zod'

/**
 * The bounds of requests. A request above a bound is refused, with the time after which it may be repeated.
 */
export interface RequestPace {
  /** Writing requests of a merchant in a second, over all its tokens. */
  writesPerSecond: number
  readsPerSecond: number
  /**
   * Requests of an address to one public route in a minute; an IPv6 network of 64 bits is one address. For
   * payment links, a multiple is allowed (`RATE_LIMIT_PUBLIC`).
   */
  publicPerMinute: number
  /** Unpaid requests for money that payment links make to one phone in ten minutes. */
  promptsPerPhone: number
  /** Objects that GraphQL may give a merchant, or an address without a token, in a minute. */
  objectsPerMinute: number
  /** The most requests that one process works on at once. Reads get in while less than 2/5 of it is taken. */
  inFlightMax: number
}

const count = z.coerce.number().int().min(1).max(1_000_000_000).optional()

/**
 * The defaults. Those of a sandbox are higher, because a whole test suite comes from one merchant and one
 * address.
 */
const usual: Readonly<Record<'production' | 'sandbox', RequestPace>> = {
  // How requests are counted: see docs/design/rules.md#limits.
  production: {
    writesPerSecond: 100,
    readsPerSecond: 200,
    publicPerMinute: 60,
    // Choice: a payer with a wrong code or too small a balance tries again a few times.
    promptsPerPhone: 5,
    objectsPerMinute: 100_000,
    inFlightMax: 512,
  },
  sandbox: {
    writesPerSecond: 1_000,
    readsPerSecond: 2_000,
    publicPerMinute: 6_000,
    promptsPerPhone: 1_000,
    objectsPerMinute: 1_000_000,
    inFlightMax: 2_048,
  },
}

/** Describes a setting: its text, and its defaults in production and in a sandbox. */
const usually = (name: keyof RequestPace, description: string) => ({
  description,
  usual: { production: usual.production[name], sandbox: usual.sandbox[name] },
})

/** The settings of these bounds. */
export const paceSettings = {
  RATE_LIMIT_WRITES: count.meta(
    usually(
      'writesPerSecond',
      'Writing requests of a merchant in one second, over all nodes. One token may use four fifths of it.',
    ),
  ),
  RATE_LIMIT_READS: count.meta(
    usually('readsPerSecond', 'Reading requests of a merchant in one second, counted in the same way.'),
  ),
  RATE_LIMIT_PUBLIC: count.meta(
    usually(
      'publicPerMinute',
      'Requests of one address to a public route in one minute, over all nodes. Pages of ' +
        'payment links 100 times as many, their forms 5 times, the requests for one link 10 ' +
        'times.',
    ),
  ),
  RATE_LIMIT_PROMPTS: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .meta(
      usually(
        'promptsPerPhone',
        'Unpaid requests for money that payment links make to one phone in ten minutes. Four ' +
          'times as many in a day.',
      ),
    ),
  RATE_LIMIT_OBJECTS: count.meta(
    usually(
      'objectsPerMinute',
      'Objects that GraphQL gives a merchant, or an address without a token, in one minute.',
    ),
  ),
  IN_FLIGHT_MAX: z.coerce
    .number()
    .int()
    .min(8)
    .max(100_000)
    .optional()
    .meta(
      usually(
        'inFlightMax',
        'Requests at once in one process. Above this number the process answers 503: to reads first, to ' +
          'payments last.',
      ),
    ),
}

export function readPace(
  mode: 'production' | 'sandbox',
  read: z.output<z.ZodObject<typeof paceSettings>>,
): RequestPace {
  return {
    writesPerSecond: read.RATE_LIMIT_WRITES ?? usual[mode].writesPerSecond,
    readsPerSecond: read.RATE_LIMIT_READS ?? usual[mode].readsPerSecond,
    publicPerMinute: read.RATE_LIMIT_PUBLIC ?? usual[mode].publicPerMinute,
    promptsPerPhone: read.RATE_LIMIT_PROMPTS ?? usual[mode].promptsPerPhone,
    objectsPerMinute: read.RATE_LIMIT_OBJECTS ?? usual[mode].objectsPerMinute,
    inFlightMax: read.IN_FLIGHT_MAX ?? usual[mode].inFlightMax,
  }
}
