import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

// Builds the dashboard (`npm run build`): hashed files, which the server reads at its start and serves.

/** Writes each file of the build a second and third time, compressed: no request has to wait for it. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    writeBundle({ dir = '' }, bundle) {
      for (const name of Object.keys(bundle)) {
        // The server fills the page in, and sends it as it is.
        if (name.endsWith('.html')) continue
        const content = readFileSync(join(dir, name))
        const params = {
          [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
        }
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(content, { params }))
        writeFileSync(join(dir, `${name}.gz`), gzipSync(content, { level: constants.Z_BEST_COMPRESSION }))
      }
    },
  }
}

export default defineConfig({
  root: join(import.meta.dirname, '../src/dashboard'),
  // Relative: the service may be served below a path of a proxy.
  base: './',
  cacheDir: join(import.meta.dirname, '../node_modules/.cache/merchant-payments/vite'),
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [compressed()],
  build: {
    outDir: 'built',
    emptyOutDir: true,
    target: 'es2022',
    // The policy of the page allows no script inside of it, and no file as a `data:` address but images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
})
