/** Processor time, memory, and the delay of the event loop. */
const measures = /\b(?:(?:thread|process)Ms|memoryUsage|(?:threadC|c)puUsage|monitorEventLoopDelay|hrtime)\(/g

/**
 * Finds upper bounds of elapsed times, and all measures of processor time and memory: a busy machine breaks
 * them. An elapsed time is a difference of the clock in `expect(...)`, or has a name from before.
 */
export function boundedTimes(text: string): string[] {
  const now = String.raw`(?:performance|Date)\.now\(\)`
  const names = Array.from(
    text.matchAll(new RegExp(String.raw`(?:const|let) (\w+) = ${now} -|\b(\w+)(?:\.push\(|: )${now} -`, 'g')),
    ([, given, other]) => given ?? other ?? '',
  )
  const time = new RegExp([`${now} -`, `- ${now}`, ...names.map((name) => String.raw`\b${name}\b`)].join('|'))
  const bounds = text.matchAll(/expect\((.*)\)\.toBeLessThan(?:OrEqual)?\(.*\)$/gm)
  const elapsed = Array.from(bounds).flatMap(([all, value = '']) => (time.test(value) ? [all] : []))
  return [...elapsed, ...(text.match(measures) ?? [])]
}
