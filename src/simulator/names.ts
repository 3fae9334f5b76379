import { createHash } from 'node:crypto'

const firstNames = [
  'Aminata',
  'Moussa',
  'Fatoumata',
  'Ibrahim',
  'Mariam',
  'Oumar',
  'Kadiatou',
  'Seydou',
  'Awa',
  'Bakary',
]
const lastNames = [
  'Traoré',
  'Coulibaly',
  'Keïta',
  'Diarra',
  'Diallo',
  'Konaté',
  'Touré',
  'Sangaré',
  'Maïga',
  'Cissé',
]

/** Returns the invented holder of a number, always the same. */
export function nameOf(msisdn: string): { first: string; last: string } {
  const digest = createHash('sha256').update(msisdn).digest()
  const pick = (names: readonly string[], byte: number) => names[(digest[byte] ?? 0) % names.length] ?? ''
  return { first: pick(firstNames, 0), last: pick(lastNames, 1) }
}
