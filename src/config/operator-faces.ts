import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { z } from 'zod'
import { type Provider, providers } from '../shared/providers.ts'
import { ConfigError, parse } from './parse.ts'

/** A picture that pages show. */
export interface Picture {
  /** The path from the top of the service, without a slash; it changes with the content. */
  path: string
  type: string
  content: Buffer<ArrayBuffer>
}

/** An operator as payers and merchants know it. */
export interface OperatorFace {
  /** The name of the operator's service, such as the one on its signs; the neutral name where none is set. */
  label: string
  /** The colour of the operator as `#rrggbb`; null where none is set. */
  colour: string | null
  logo: Picture | null
  /** The code that opens the operator's menu on a telephone, such as `#144#`; null where none is set. */
  ussd: string | null
}

export type OperatorFaces = Readonly<Record<Provider, OperatorFace>>

/** The types of pictures that every browser shows. */
const pictureTypes: Readonly<Record<string, string>> = {
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
}

/** The largest picture in bytes. Choice: a payer on a slow network loads it with the page. */
const pictureBytesMax = 50_000

/** The settings of the face of an operator, without the operator's prefix. */
export const faceSettings = z.object({
  LABEL: z
    .string()
    .trim()
    .min(1)
    .max(40, 'must have at most 40 characters')
    .regex(/^\P{C}*$/v, 'must be one line of text')
    .optional()
    .meta({ description: 'The name that payers and merchants read.', usual: 'OperatorX' }),
  COLOUR: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, 'must be a colour such as #ff7900')
    .optional()
    .describe('The colour of the operator, such as #ff7900.'),
  LOGO: z
    .string()
    .min(1)
    .optional()
    .describe('The path of a picture of at most 50 kB: .svg, .png, .webp or .jpg.'),
  USSD: z
    .string()
    .regex(/^[*#][\d*#]{1,20}#$/, 'must be a code such as #144#')
    .optional()
    .describe('The code that opens the menu of the operator on a telephone, such as #144#.'),
})

/**
 * Reads the faces of all operators, in a sandbox too.
 * @throws ConfigError that names every wrong setting
 */
export function readFaces(values: Readonly<Record<string, string | undefined>>): OperatorFaces {
  const problems: string[] = []
  const faces = providers.map((provider) => {
    try {
      return [provider, readFace(provider, values)]
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(error.message)
      return []
    }
  })
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  const read = Object.fromEntries(faces) as OperatorFaces
  const labels = new Map<string, Provider>()
  for (const provider of providers) {
    const name = read[provider].label.toLowerCase()
    const other = labels.get(name)
    if (other) throw new ConfigError(`${prefixOf(provider)}LABEL: is the name of ${other} too`)
    labels.set(name, provider)
  }
  return read
}

/** Warns of each connected operator without a name: payers would read a name that only programs know. */
export function labelWarnings({ operators, faces }: Named): string[] {
  return operators
    .filter(({ provider }) => faces[provider].label === provider)
    .map(({ provider }) => `${prefixOf(provider)}LABEL is not set: people read "${provider}"`)
}

interface Named {
  operators: readonly { provider: Provider }[]
  faces: OperatorFaces
}

const prefixOf = (provider: Provider) => `OPERATOR_${provider.slice(-1)}_`

function readFace(provider: Provider, values: Readonly<Record<string, string | undefined>>): OperatorFace {
  const prefix = prefixOf(provider)
  const own = Object.fromEntries(Object.keys(faceSettings.shape).map((name) => [name, values[prefix + name]]))
  const { LABEL, COLOUR, LOGO, USSD } = parse(faceSettings, own, prefix)
  return {
    label: LABEL ?? provider,
    colour: COLOUR?.toLowerCase() ?? null,
    logo: LOGO === undefined ? null : readPicture(LOGO, provider, `${prefix}LOGO`),
    ussd: USSD ?? null,
  }
}

/** Reads the picture of a setting. @throws ConfigError where there is none that pages can show */
function readPicture(file: string, provider: Provider, setting: string): Picture {
  const ending = extname(file).toLowerCase()
  const type = pictureTypes[ending]
  if (type === undefined) throw new ConfigError(`${setting}: must be a .svg, .png, .webp or .jpg file`)
  let content
  try {
    content = readFileSync(file)
  } catch (error) {
    throw new ConfigError(`${setting}: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (content.length > pictureBytesMax)
    throw new ConfigError(`${setting}: must have at most ${pictureBytesMax} bytes`)
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12)
  return { path: `assets/${hash}-${provider}${ending}`, type, content }
}
