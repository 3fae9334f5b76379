import { expect, test } from 'vitest'
import { readSources, type Source, specifiersOf } from '../kit/sources.ts'

// The dashboard imports its own files and the packages below. `style.check.ts` holds that it shares no code
// with the server.

/** The packages that visitors of the dashboard load. */
const packages: ReadonlySet<string> = new Set([
  '@urql/core',
  '@urql/exchange-graphcache',
  '@urql/preact',
  'graphql-ws',
  'preact',
  'uplot',
  'uqr',
  'wouter-preact',
])

/** The package of an import, without the path of a file in it. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function foreignImports({ path, text }: Source): string[] {
  if (!path.startsWith('src/dashboard/')) return []
  return specifiersOf(text)
    .filter((specifier) => !specifier.startsWith('.') && !packages.has(packageOf(specifier)))
    .map((specifier) => `${path}: ${specifier}`)
}

test('the dashboard imports its own packages only', () => {
  const sources = readSources()
  expect(sources.filter(({ path }) => path.startsWith('src/dashboard/')).length).toBeGreaterThan(5)
  expect(sources.flatMap(foreignImports)).toEqual([])
  const planted =
    "import { print } from 'graphql'\nimport { render } from 'preact'\nimport '@pothos/core/types'\n"
  expect(foreignImports({ path: 'src/dashboard/app.tsx', text: planted })).toEqual([
    'src/dashboard/app.tsx: graphql',
    'src/dashboard/app.tsx: @pothos/core/types',
  ])
})
