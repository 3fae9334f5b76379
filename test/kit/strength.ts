/** Whether this is `npm run test:long`, where random searches run at their full length. */
const isLong = process.env['TEST_STRENGTH'] === 'long'

/**
 * The size of a random search: small in `npm test`, so that it ends soon, and full in `npm run test:long`.
 */
export function strength<T>(usual: T, long: T): T {
  return isLong ? long : usual
}
