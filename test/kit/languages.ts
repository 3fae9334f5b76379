import { execFile, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { patienceMs } from './eventually.ts'
import { root } from './sources.ts'

/** A language of merchants, beside JavaScript. */
export interface MerchantLanguage {
  name: 'Java' | 'PHP' | 'Python'
  /** The language of the code blocks in the guide. */
  fence: string
  /** A command that succeeds where programs can run. */
  probe: readonly [string, ...string[]]
  /** The packages of Debian that `.ci/run` installs. */
  packages: string
  /** The file that holds the code of the guide to webhooks. */
  verifier: string
  /** Makes a whole file of that code. */
  around: (code: string) => string
  /** The command that runs a program. */
  run: readonly [string, ...string[]]
}

export const languages: readonly MerchantLanguage[] = [
  {
    name: 'Java',
    fence: 'java',
    // Only the compiler of a JDK runs a source file; a JRE does not have the compiler.
    probe: ['javac', '-version'],
    packages: 'default-jdk-headless',
    verifier: 'Verify.java',
    around: (code) => `import static java.nio.charset.StandardCharsets.UTF_8;
import java.security.*;
import java.util.*;
import java.util.function.*;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
class Verify {
${code}
}`,
    run: ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', '.'],
  },
  {
    name: 'PHP',
    fence: 'php',
    probe: ['php', '-r', 'exit(extension_loaded("curl") ? 0 : 1);'],
    packages: 'php-cli php-curl',
    verifier: 'verify.php',
    around: (code) => `<?php\n${code}`,
    run: ['php'],
  },
  {
    name: 'Python',
    fence: 'python',
    probe: ['python3', '-c', ''],
    packages: 'python3',
    verifier: 'verify.py',
    around: (code) => code,
    run: ['python3'],
  },
]

/**
 * Whether the tests of a language are skipped because it is missing; then a line says so. `.ci/run` installs
 * the languages; where `CI` is set, the tests of a missing one run and fail.
 */
export function cannotRun({ name, probe: [program, ...args], packages }: MerchantLanguage): boolean {
  if (spawnSync(program, args).status === 0 || process.env['CI']) return false
  process.stdout.write(
    `SKIPPED: ${name} client: ${packages} is not installed (apt-get install ${packages})\n`,
  )
  return true
}

/** The code that verifies a delivery, as the guide to webhooks gives it. */
export function guideCode(fence: string): string {
  const guide = readFileSync(join(root, 'src/docs/guide/webhooks.md'), 'utf8')
  return new RegExp(`\`\`\`${fence}\\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? ''
}

/** A folder with the clients of `test/clients` and the code of the guide. */
export interface ClientFolder {
  /**
   * Runs a client to its end.
   * @returns the line of JSON that it printed
   * @throws Error with its complaints, where it failed
   */
  run(file: string, environment: Record<string, string>): Promise<ReturnType<typeof JSON.parse>>
  remove(): Promise<void>
}

export async function openClients(language: MerchantLanguage): Promise<ClientFolder> {
  const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-clients-'))
  cpSync(join(root, 'test/clients'), dir, { recursive: true })
  writeFileSync(join(dir, language.verifier), language.around(guideCode(language.fence)))
  const start = async ([program, ...args]: readonly [string, ...string[]], env = {}) => {
    const { PATH = '', HOME = dir } = process.env
    // A desktop and a container without a locale read and write the same bytes.
    const locale = { LC_ALL: 'C.UTF-8', PYTHONDONTWRITEBYTECODE: '1' }
    const options = { cwd: dir, timeout: patienceMs, env: { PATH, HOME, ...locale, ...env } }
    return (await promisify(execFile)(program, args, options)).stdout
  }
  return {
    async run(file, environment) {
      if (language.name === 'Java')
        await start(['javac', '-J-XX:TieredStopAtLevel=1', '-J-XX:+UseSerialGC', '-encoding', 'UTF-8', file])
      const program = language.name === 'Java' ? file.replace('.java', '') : file
      return JSON.parse(await start([...language.run, program], environment))
    },
    remove: () => rm(dir, { recursive: true, force: true }),
  }
}
