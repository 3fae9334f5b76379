import { credentialFreshMs } from '../../src/identity/credentials.ts'
import { limits } from '../../src/shared/limits.ts'

/**
 * Finds upper bounds below 1,000 ms on differences of the clock: a busy machine breaks them. The difference
 * is in `expect(...)`, or has a name from before. A ratio of two times is none.
 */
export function shortTimes(text: string): string[] {
  const now = String.raw`(?:performance|Date)\.now\(\) -`
  const names = Array.from(
    text.matchAll(new RegExp(String.raw`(?:const|let) (\w+) = ${now}|\b(\w+)\.push\(${now}`, 'g')),
    ([, given, list]) => given ?? list ?? '',
  )
  const time = new RegExp([now, ...names.map((name) => String.raw`\b${name}\b`)].join('|'))
  const bound = /expect\((.*)\)\.(?:toBeLessThan|toBeLessThanOrEqual)\((.*)\)$/gm
  return Array.from(text.matchAll(bound)).flatMap(([all, value = '', most = '']) =>
    time.test(value) && !value.includes(' / ') && milliseconds(most) < 1_000 ? [all] : [],
  )
}

/** The value of a bound of one or two numbers, each written out or named in the file; else infinite. */
function milliseconds(bound: string): number {
  const [, name = '', digits, operator, by = ''] =
    /^(?:(?:limits\.)?([a-z]\w+)|([\d_]+))(?: ([*/+]) ([\d_.]+))?$/.exec(bound) ?? []
  const named: Record<string, number | undefined> = { ...limits, credentialFreshMs }
  const known = named[name] ?? Infinity
  const first = digits === undefined ? known : Number(digits.replaceAll('_', ''))
  const second = Number(by.replaceAll('_', ''))
  if (operator === '*') return first * second
  if (operator === '/') return first / second
  return operator === '+' ? first + second : first
}
