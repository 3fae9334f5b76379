import { parseArgs } from 'node:util'
import { certify } from './certify.ts'
import { subjects } from './subjects.ts'
import { table } from './table.ts'

const help = `Certifies the operators' drivers: every operation under every fault, over sockets.

  npm run drivers:check              all of them
  npm run drivers:check -- checkout  those whose name has this word`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean', default: false } },
})
const wanted = subjects.filter(({ name }) => positionals.every((word) => name.includes(word)))
if (values.help || wanted.length === 0) {
  process.stdout.write(`${help}\n`)
  if (!values.help) process.exitCode = 2
} else {
  const startedAt = performance.now()
  const certificates = wanted.map((subject) => certify(subject))
  for (const each of certificates) {
    const certificate = await each
    process.stdout.write(`${table(certificate)}\n\n`)
    if (certificate.cells.some(({ verdict }) => verdict.kind === 'failed')) process.exitCode = 1
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  const words = process.exitCode === 1 ? 'Not certified' : 'Certified'
  process.stdout.write(`${words}: ${wanted.length} drivers and flows in ${seconds} s.\n`)
}
