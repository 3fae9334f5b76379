/** One change of a source file: a text that occurs exactly once, and the faulty text that replaces it. */
export interface Edit {
  /** A path from the root, or `name()` for the file of a SQL function. */
  file: string
  find: string
  replace: string
}

/** A bug that is planted in a copy of the sources, never in the sources themselves. */
export interface Mutant {
  /** The fault in words. */
  name: string
  edits: readonly Edit[]
  /** The test that must fail: a file below `test`, and a part of the full name of a test in it. */
  test: { file: string; name: string } | null
  /** The crash harness must find it (`npm run crash -- --planted`). */
  isFoundByCrashes: boolean
}

/** A bug that a named test finds. */
export type TestedMutant = Mutant & { test: NonNullable<Mutant['test']> }

export const isTested = (mutant: Mutant): mutant is TestedMutant => mutant.test !== null
