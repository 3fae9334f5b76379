import type { Route } from './route.ts'

/** What there is at a path: each method's work, and what the parts in braces stand for. */
export interface Place<Work> {
  methods: ReadonlyMap<string, Work>
  params: Readonly<Record<string, string>>
}

/**
 * Prepares the search for a path, below the prefix, among the rows of the table. A path without parameters
 * is found at once; the others are tried in the order of the table.
 */
export function findRoutes<Work>(
  rows: readonly (readonly [Pick<Route, 'method' | 'path'>, Work])[],
): (path: string) => Place<Work> | null {
  const fixed = new Map<string, Place<Work>>()
  const open: { pattern: RegExp; methods: ReadonlyMap<string, Work> }[] = []
  for (const [path, ofPath] of Map.groupBy(rows, ([route]) => route.path)) {
    const methods = new Map(ofPath.map(([{ method }, work]) => [method, work] as const))
    if (path.includes('{')) {
      const pattern = new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
      open.push({ pattern, methods })
    } else fixed.set(path, { methods, params: {} })
  }
  return (path) => {
    const known = fixed.get(path)
    if (known) return known
    for (const { pattern, methods } of open) {
      const match = pattern.exec(path)
      if (!match) continue
      const params = Object.entries(match.groups ?? {}).map(([name, text]) => [name, decoded(text)])
      return { methods, params: Object.fromEntries(params) as Record<string, string> }
    }
    return null
  }
}

/** What is no valid encoding stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
