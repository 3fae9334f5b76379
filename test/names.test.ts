import { expect, test } from 'vitest'
import { readSources, type Source, withoutComments } from './kit/sources.ts'

// One word, one meaning (docs/glossary.md): no exported type name is declared twice, and the words that were
// replaced do not come back. Each rule is shown to fail.

/** Words that had several meanings or were known to nobody else; the glossary has the ones to use. */
const replaced: readonly string[] = [
  'shareFlight',
  'giveWay',
  'nudge',
  'rehearse',
  'foresee',
  'unseal',
  'unnoted',
  'laneHolds',
  'turnedAway',
  'sinceToldMs',
  'whenProven',
  'RecentMap',
  'WaitingRoom',
  'EffectsPlugin',
  'openStage',
  'useScene',
  'nastyValue',
  'bombard',
  'Ground',
  'Lane',
  'Wish',
  'Standing',
]

const sources = readSources()

function declaredTwice(all: readonly Source[]): string[] {
  const paths = new Map<string, string[]>()
  for (const { path, text } of all)
    for (const [, name = ''] of text.matchAll(/^export (?:type|interface|(?:abstract )?class) (\w+)/gm))
      paths.set(name, [...(paths.get(name) ?? []), path])
  return [...paths].flatMap(([name, found]) => (found.length > 1 ? [`${name}: ${found.join(', ')}`] : []))
}

/** Identifiers of the code, without comments and without what stands in quotes. */
function replacedWords({ path, text }: Source): string[] {
  const code = withoutComments(text).replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
  const found = code.match(new RegExp(`(?<![\\w$])(?:${replaced.join('|')})(?![\\w$])`, 'g')) ?? []
  return found.map((word) => `${path}: ${word}`)
}

test('no exported type name is declared twice', () => {
  expect(declaredTwice(sources)).toEqual([])
  const twice = ['a.ts', 'b.ts'].map((path) => ({ path, text: 'export interface Item {}\n' }))
  expect(declaredTwice(twice)).toEqual(['Item: a.ts, b.ts'])
})

test('no identifier is a word that was replaced', () => {
  expect(sources.flatMap(replacedWords)).toEqual([])
  const text = "// Lane\nconst lane = openStage()\nexport type Wish = 'Ground'\n"
  expect(replacedWords({ path: 'src/a.ts', text })).toEqual(['src/a.ts: openStage', 'src/a.ts: Wish'])
})
