import { styleText } from 'node:util'
import { faults } from './faults.ts'
import { type Certificate, operations, type ConformanceVerdict } from './subject.ts'

const signs = { passed: 'yes', failed: 'NO', impossible: '-', 'not offered': 'not yet' } as const
const colours = { passed: 'green', failed: 'red', impossible: 'gray', 'not offered': 'yellow' } as const
const firstWidth = 30
const width = 11

/** Prints a certificate: faults down, operations across, and below it the errors and the missing parts. */
export function table({ subject, cells, notOffered }: Certificate): string {
  const head = ['', ...operations]
    .map((word, index) => word.padEnd(index === 0 ? firstWidth : width))
    .join('')
  const rows = faults.map(({ name }) => {
    const row = operations.map((operation) => {
      const verdict = cells.find((cell) => cell.fault === name && cell.operation === operation)?.verdict
      return verdict ? sign(verdict) : ''.padEnd(width)
    })
    return `${name.padEnd(firstWidth)}${row.join('')}`.trimEnd()
  })
  const missing = new Set([
    ...cells.flatMap(({ verdict }) => (verdict.kind === 'not offered' ? [verdict.what] : [])),
    ...notOffered,
  ])
  const failures = cells.flatMap(({ fault, operation, verdict }) =>
    verdict.kind === 'failed' ? [`  ${operation} under "${fault}": ${verdict.why}`] : [],
  )
  const impossible = cells.filter(({ verdict }) => verdict.kind === 'impossible').length
  const passed = cells.filter(({ verdict }) => verdict.kind === 'passed').length
  return [
    styleText('bold', subject),
    styleText('dim', head.trimEnd()),
    ...rows,
    `${passed} passed, ${failures.length} failed, ${impossible} cannot happen here (-)`,
    ...(missing.size > 0 ? [`not offered yet: ${[...missing].join(', ')}`] : []),
    ...failures.map((line) => styleText('red', line)),
  ].join('\n')
}

function sign(verdict: ConformanceVerdict): string {
  return styleText(colours[verdict.kind], signs[verdict.kind].padEnd(width))
}
