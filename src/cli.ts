import { enableCompileCache } from 'node:module'
import { runCommandLine } from './terminal/command-line.ts'

enableCompileCache()

process.exitCode = await runCommandLine(process.argv.slice(2), process)
