/** Starts `count` calls at the same time. @returns their results in order */
export function many<T>(count: number, act: (n: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => act(n)))
}

/** Counts each word; `none` counts those that are undefined. */
export function counted(words: readonly (string | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word ?? 'none'] = (counts[word ?? 'none'] ?? 0) + 1
  return counts
}
