import { expect, test } from 'vitest'
import { importsOf, readSources } from './kit/sources.ts'

test('no file imports itself through others, types included', () => {
  const graph = new Map(
    readSources()
      .filter(({ path }) => path.startsWith('src/'))
      .map((each) => [each.path, importsOf(each.path, each.text)]),
  )
  expect(circlesOf(graph)).toEqual([])
  const two = new Map([
    ['src/a.ts', ['src/b.ts']],
    ['src/b.ts', ['src/a.ts']],
  ])
  expect(circlesOf(two)).toHaveLength(1)
})

/** Circles of imports, each as the files on its way. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const circles: string[] = []
  function visit(path: string, way: readonly string[]): void {
    const at = way.indexOf(path)
    if (at >= 0) circles.push([...way.slice(at), path].join(' > '))
    if (at >= 0 || done.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...way, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return circles
}
