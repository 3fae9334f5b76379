import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { patienceMs } from './eventually.ts'

/** Chromium without windows: a page costs half of the processor time. */
const shellPath = '/usr/bin/chromium-headless-shell'
const chromiumPath = existsSync(shellPath) ? shellPath : '/usr/bin/chromium'
/** `.ci/run` installs Chromium; a machine without it tests everything but the pages, and says so. */
export const cannotLook = !existsSync(chromiumPath) && !process.env['CI']

/** Real Chromium with a small window and an empty profile. */
export interface TestBrowser {
  context: BrowserContext
  close(): Promise<void>
}

export async function openBrowser(options: { width: number; javaScript: boolean }): Promise<TestBrowser> {
  const profile = await mkdtemp(join(tmpdir(), 'chromium-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath,
    headless: true,
    timeout: patienceMs,
    viewport: { width: options.width, height: 640 },
    javaScriptEnabled: options.javaScript,
    locale: 'fr-ML',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  context.setDefaultTimeout(patienceMs)
  return {
    context,
    async close() {
      await context.close()
      await rm(profile, { recursive: true, force: true })
    },
  }
}
