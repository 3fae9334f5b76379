import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSimulatorProcess } from '../../src/operators/simulator-process.ts'
import { Secret } from '../../src/shared/secret.ts'
import { startChild } from './child.ts'
import { type BenchFixture, openFixture } from './fixture.ts'
import type { OperatorKind, ProductOptions, ProductQuestion, ProductReady } from './processes/product.ts'

/** The service under way in a process of its own, beside a simulator in another. */
export interface Product {
  pid: number
  port: number
  /** Where the simulator plays the operators. */
  operatorsUrl: string
  /** The service's data folder: its master secret lies there. */
  dataDir: string
  merchants: ProductReady['merchants']
  useOperator(operator: OperatorKind): Promise<unknown>
  ask(question: ProductQuestion): Promise<unknown>
  close(): Promise<void>
}

/**
 * Starts the service as it is in `src/`; it applies the migrations.
 * @param merchants how many, or how many readers each of them has: then there is no operator
 * @param inFlightMax null leaves the setting's own
 */
export async function startProduct(
  fixture: BenchFixture,
  merchants: number | readonly number[],
  inFlightMax: number | null = 100_000,
): Promise<Product> {
  const dataDir = mkdtempSync(join(tmpdir(), 'merchant-payments-bench-'))
  chmodSync(dataDir, 0o755)
  const live = typeof merchants === 'object'
  const simulator = live ? null : await openSimulator(dataDir)
  const operatorsUrl = simulator?.url ?? 'http://127.0.0.1:9'
  const options: ProductOptions = {
    databaseUrl: fixture.url,
    dataDir,
    operatorsUrl,
    ...(live ? { merchants: merchants.length, readers: merchants } : { merchants }),
    inFlightMax: live ? null : inFlightMax,
  }
  const child = await startChild<ProductReady>('product.ts', options)
  return {
    pid: child.pid,
    port: child.ready.port,
    operatorsUrl,
    dataDir,
    merchants: child.ready.merchants,
    useOperator: (operator) => child.ask({ operator }),
    ask: (question) => child.ask(question),
    async close() {
      await child.close()
      await simulator?.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Runs work with the service on a database of its own, and ends both. */
export async function withProduct<Result>(
  merchants: number,
  work: (product: Product, fixture: BenchFixture) => Promise<Result>,
  inFlightMax?: number | null,
): Promise<Result> {
  const fixture = await openFixture()
  const product = await startProduct(fixture, merchants, inFlightMax)
  try {
    return await work(product, fixture)
  } finally {
    await product.close()
    await fixture.close()
  }
}

function openSimulator(dataDir: string) {
  return startSimulatorProcess({
    port: 0,
    journalPath: join(dataDir, 'operators.jsonl'),
    controlToken: new Secret('sandbox-control'),
  })
}
