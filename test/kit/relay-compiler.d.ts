declare module 'relay-compiler' {
  /** The path of the program for this machine; null where the package has none. */
  const program: string | null
  export = program
}
