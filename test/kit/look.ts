import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { root } from './sources.ts'

/**
 * Screenshots of every page and screen, for a look by hand (`SCREENSHOTS=1 npm test -- test/pages`); git
 * ignores the folder. No test reads one, and they cost a fifth of the time of those that take them.
 */
const screenshots = join(root, 'node_modules/.cache/merchant-payments/screenshots')

const found = `({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' '))`
/** WCAG 2.0 to 2.2, the rule on target size, which is off by default, and axe-core's best practices. */
const violations = `axe.run({ rules: { 'target-size': { enabled: true } } }).then(${found})`
/** The rules that depend on the dark colours. */
const colours = `axe.run({ runOnly: ['color-contrast'] }).then(${found})`

/** Finds, and refuses, what axe-core has against a page as it stands. */
export async function expectAccessible(page: Page, rules: 'all' | 'colours' = 'all'): Promise<void> {
  await page.evaluate(await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8'))
  expect(await page.evaluate(rules === 'all' ? violations : colours)).toEqual([])
}

/** Keeps a picture or paper under a path below the folder of screenshots, where they are wanted. */
export async function keep(path: string, make: () => Promise<Uint8Array>): Promise<void> {
  if (!process.env['SCREENSHOTS']) return
  const file = join(screenshots, path)
  await mkdir(join(file, '..'), { recursive: true })
  await writeFile(file, await make())
}

/** Keeps a screenshot of a page, where they are wanted. @param path below the folder, without its ending */
export async function photograph(page: Page, path: string): Promise<void> {
  await keep(`${path}.png`, () => page.screenshot({ fullPage: true }))
}

/**
 * Holds that a page is accessible, light and dark, that no amount breaks into two lines and that nothing
 * overflows the smallest telephone; keeps screenshots of it where they are wanted.
 * @param path of the screenshots, below their folder
 */
export async function expectGoodLook(page: Page, path: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await expectAccessible(page, colorScheme === 'light' ? 'all' : 'colours')
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 640 })
      await photograph(page, `${path}-${colorScheme}-${width}`)
    }
  }
  await page.setViewportSize({ width: 320, height: 640 })
  // An amount is on one line, however large.
  const sums = await page.evaluate(`[...document.querySelectorAll('.sum')]
    .map(({ offsetHeight, scrollWidth, clientWidth }) => [offsetHeight < 50, scrollWidth <= clientWidth])`)
  for (const fits of sums as boolean[][]) expect(fits).toEqual([true, true])
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320)
  await page.setViewportSize({ width: 360, height: 640 })
}
