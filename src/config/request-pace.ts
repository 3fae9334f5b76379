import { z } from 'zod'

/** How many requests may come; more of them are told to come back later. */
export interface RequestPace {
  /** Writes of a merchant in a second, over all its tokens. */
  writesPerSecond: number
  readsPerSecond: number
  /** Requests of an address to one public route in a minute; an IPv6 network of 64 bits is one address. */
  publicPerMinute: number
  /** Requests for money by payment links, to one telephone in ten minutes, that were not paid. */
  promptsPerPhone: number
  /** Objects that GraphQL may give a merchant, or an address without a token, in a minute. */
  objectsPerMinute: number
  /** Requests under way at once; over it some are turned away, money last. */
  inFlightMax: number
}

const count = z.coerce.number().int().min(1).max(1_000_000_000).optional()

/** Where a setting says nothing: in a sandbox whole test suites come from one merchant and one address. */
const usual: Readonly<Record<'production' | 'sandbox', RequestPace>> = {
  // See docs/design/rules.md#limits.
  production: {
    writesPerSecond: 100,
    readsPerSecond: 200,
    publicPerMinute: 60,
    // Choice: who is wrong about a code or a balance tries again a few times, and no more.
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

/** What a setting is where the environment says nothing. */
const usually = (name: keyof RequestPace, description: string) => ({
  description,
  usual: { production: usual.production[name], sandbox: usual.sandbox[name] },
})

/** The settings of it. */
export const paceSettings = {
  RATE_LIMIT_WRITES: count.meta(
    usually(
      'writesPerSecond',
      'Writing requests of a merchant in one second, over all nodes. One token may use four fifths of it.',
    ),
  ),
  RATE_LIMIT_READS: count.meta(usually('readsPerSecond', 'Reading requests, likewise.')),
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
        'Requests at once in one process. Beyond it the answer is 503: reads first, money last.',
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
