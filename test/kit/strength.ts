/** Whether this is `npm run test:long`, where searches for bugs run at their full length. */
const isLong = process.env['TEST_STRENGTH'] === 'long'

/** How much a search does: little in `npm test`, so that it ends soon, and all of it in `.ci/run`. */
export function strength<T>(usual: T, long: T): T {
  return isLong ? long : usual
}
