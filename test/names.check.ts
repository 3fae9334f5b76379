import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readSources, root, type Source, withoutComments } from './kit/sources.ts'

// One word, one meaning (docs/glossary.md): no exported type name is declared twice, and the words that were
// replaced do not come back. Each rule is shown to fail.

// Words of the old list that stay: `step`, `maker`, `doubt`, `unsent`, `proof`, `head` (the API or
// bookkeepers say so); `effect`, `wake` and `note` in the simulator (its control API, its timers, its
// journal); `hold` (a verb of scopes); `letter` (of an alphabet); `forecast` (a field of the
// API); `claim` (of a token, of a key); `room` (a step of `enter.ts`); `stage` (of a proof, of a schedule);
// `folded` (a SQL function that folds the case of a name).

/** Words with several meanings, or of this house alone; the glossary has the ones to use. */
const replaced = wordsOf(
  'flights shareFlight landed landMs lanes Lane LaneHolds laneHolds LaneNotes webhookLanesMax',
  'giveWay nudge wakeJob rehearse foresee seal unseal sealingKey sealAuditLog unnoted turnedAway',
  'sinceToldMs whenProven ProvenMember provesTotp RecentMap WaitingRoom EffectsPlugin openStage',
  'useScene Scene scene World world Ground SubscriptionGround nastyValue bombard Wish Standing',
  'Asked Holder Hold Telling totpPlace caps Caps checkCaps allowance Allowance bringAnswer',
  'bringRefusal bringAbsence isWithdrawn writeLetter wordLetter openLetter Letter picture holdTeam',
  'HeldMember asMaker Maker claimSandbox Movement wallIn walls misled Plant house damage hydrate',
  'judgeForm judgeEnd judgeProofAge SlicePace newPace whileAnybodyWaits notesOf noteCount holdsFor',
  'keepHolding inviteSomebody somebodyListens nobodyWaits saysWell',
)

/** Words that tests still use. */
const replacedInSource = wordsOf(
  'told tell noted wish wishes sealed places doors woken judge judged lane standing silent sick',
  'storm plants pictureOf walled Ending whoever somebody nobody anybody',
)

/** Words that no SQL function uses. */
const replacedInSql = wordsOf(
  'told tell tells place note noted hold holder held seal sealed unsealed woken lane misled wall_in',
  'walls movement movements cause effect rest letter door heads member_behind has_place allowance',
  'take_allowance audit_seal audit_unsealed stream_head audit_letter event_cause apply_movements',
  'hold_collections rest_lane enqueue_lanes wake_webhooks place_blocks link_place',
)

const sources = readSources()

function readSqlSources(): Source[] {
  return globSync('src/**/*.sql', { cwd: root }).map((path) => ({
    path,
    text: readFileSync(join(root, path), 'utf8'),
  }))
}

function declaredTwice(all: readonly Source[]): string[] {
  const paths = new Map<string, string[]>()
  for (const { path, text } of all)
    for (const [, name = ''] of text.matchAll(/^export (?:type|interface|(?:abstract )?class) (\w+)/gm))
      paths.set(name, [...(paths.get(name) ?? []), path])
  return [...paths].flatMap(([name, found]) => (found.length > 1 ? [`${name}: ${found.join(', ')}`] : []))
}

function wordsOf(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.split(' '))
}

/** Finds replaced words among the identifiers of the code: not in its comments, and not in quotes. */
function replacedWords({ path, text }: Source): string[] {
  const isSql = path.endsWith('.sql')
  const code = (isSql ? text.replaceAll(/--.*$/gm, '') : withoutComments(text)).replaceAll(
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g,
    "''",
  )
  const words = isSql
    ? replacedInSql
    : path.startsWith('src/')
      ? [...replaced, ...replacedInSource]
      : replaced
  const found = code.match(new RegExp(`(?<![\\w$])(?:${words.join('|')})(?![\\w$])`, 'g')) ?? []
  return found.map((word) => `${path}: ${word}`)
}

test('no exported type name is declared twice', () => {
  expect(declaredTwice(sources)).toEqual([])
  const twice = ['a.ts', 'b.ts'].map((path) => ({ path, text: 'export interface Item {}\n' }))
  expect(declaredTwice(twice)).toEqual(['Item: a.ts, b.ts'])
})

test('no identifier is a word that was replaced', () => {
  expect([...sources, ...readSqlSources()].flatMap(replacedWords)).toEqual([])
  const text = "// Lane\nconst lane = openStage()\nexport type Wish = 'Ground'\n"
  expect(replacedWords({ path: 'src/a.ts', text })).toEqual([
    'src/a.ts: lane',
    'src/a.ts: openStage',
    'src/a.ts: Wish',
  ])
  expect(replacedWords({ path: 'test/a.ts', text })).toEqual(['test/a.ts: openStage', 'test/a.ts: Wish'])
  const sql = "-- told\nWITH told AS (SELECT 'note') SELECT place FROM told\n"
  expect(replacedWords({ path: 'src/a.sql', text: sql })).toEqual(
    ['told', 'place', 'told'].map((word) => `src/a.sql: ${word}`),
  )
})
