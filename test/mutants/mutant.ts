import type { Edit } from '../crash/mutants.ts'

/** A bug that is planted in a copy of the sources, and the test that must see it. */
export interface Mutant extends Edit {
  /** The fault in words. */
  name: string
  /** Further changes, of the same file if none is named: a second guard says the same. */
  more?: readonly (Omit<Edit, 'file'> & Partial<Edit>)[]
  /** A file below `test`, and a part of the full name of the test in it that must fail. */
  test: string
  finds: string
}

/** All changes of a bug, in their order. */
export function editsOf(mutant: Mutant): readonly Edit[] {
  const { file, find, replace, more = [] } = mutant
  return [{ file, find, replace }, ...more.map((edit) => ({ file, ...edit }))]
}
