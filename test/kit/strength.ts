/** True in `npm run soak`, where searches draw new seeds and run at their full length. */
export const isSoak = process.env['TEST_STRENGTH'] === 'soak'

/** The size of a search: small in `npm test`, so that it ends soon, and full in `npm run soak`. */
export function strength<T>(usual: T, full: T): T {
  return isSoak ? full : usual
}
