/**
 * Seeds under which a search once found a fault. `npm test` plays those of the property searches after its
 * own seed; those of the kills take minutes and are played by `npm run soak`.
 */
export const regressions = {
  'money out': [435_034_521, 461_977_227],
  crash: [9_006, 125_000, 269_079, 760_038, 983_950],
} as const satisfies Record<string, readonly number[]>
