import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parse } from 'csv-parse/sync'
import { getNamedType } from 'graphql'
import { createClient } from 'graphql-ws'
import { expect } from 'vitest'
import { WebSocket } from 'ws'
import { typedText } from '../../../src/http/csv.ts'
import type { Arrived } from '../webhooks/receivers.ts'
import { selectionOf } from '../whole-selections.ts'
import { rootFields, snakeCase } from './input-fields.ts'
import type { Written } from './writer.ts'

// The ways by which rows leave the service beside its lists: tables, streams, webhooks and pages.

/** Reads an export. @returns its rows by id, each with the texts that a person typed */
export async function readTable(url: string, token: string, name: string) {
  const headers = { Authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}/merchant/api/exports/${name}`, { headers })
  const text = await answer.text()
  expect([name, answer.status]).toEqual([name, 200])
  expect(text.isWellFormed()).toBe(true)
  const rows = parse<Record<string, string>>(text, { columns: true, bom: true, record_delimiter: '\r\n' })
  return new Map(rows.map((row) => [row['id'] ?? '', row]))
}

/** Returns what differs between an export and the values that were written. */
export function tableDifferences(
  rows: Awaited<ReturnType<typeof readTable>>,
  written: readonly Written[],
): string[] {
  return written.flatMap(({ id, field, shown, sent }) => {
    const row = rows.get(id)
    if (row === undefined) return [`${sent}: no row ${id}`]
    const cell = row[snakeCase(field)]
    if (cell === undefined || typedText(cell) === String(shown ?? '')) return []
    return [`${sent}: cell ${JSON.stringify(cell)}, not ${JSON.stringify(shown)}`]
  })
}

type Delivered = Pick<Arrived, 'headers' | 'body'>

/** Starts a receiver of webhooks that takes everything. */
export async function openReceiver() {
  const arrived: Delivered[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      arrived.push({ headers: request.headers, body: Buffer.concat(chunks) })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { arrived, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close }
}

/** Reads the event of a delivery, whose signature must be right over its bytes. */
export function readDelivery({ headers, body }: Delivered, secret: string) {
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  expect(headers['x-service-signature']).toBe(signature)
  return JSON.parse(body.toString()) as { id: string; event: string; data: Record<string, unknown> }
}

/** A subscription that reads the log from its beginning, and goes on. */
export function openStream(url: string, token: string, name: string) {
  const field = rootFields('subscription')[name]
  if (!field) throw new Error(`there is no subscription ${name}`)
  const client = createClient({
    url: `${url.replace(/^http/, 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { Authorization: `Bearer ${token}` },
    retryAttempts: 0,
  })
  const query = `subscription { change: ${name}(after: "0") ${selectionOf(getNamedType(field.type), 1)} }`
  const changes: Record<string, unknown>[] = []
  const problems: unknown[] = []
  client.subscribe<{ change: Record<string, unknown> }>(
    { query },
    {
      next: ({ data, errors }) => {
        if (errors) problems.push(...errors)
        if (data) changes.push(data.change)
      },
      error: (error) => problems.push(error),
      complete: () => {},
    },
  )
  return { changes, problems, close: () => client.dispose() }
}

/** The rows of changes, by `Type:id`. */
export function rowsOfChanges(changes: readonly Record<string, unknown>[]): Map<string, unknown> {
  return new Map(
    changes.flatMap((change) =>
      Object.values(change).flatMap((part): [string, unknown][] => {
        const { __typename: type, databaseId } = (part ?? {}) as { __typename?: string; databaseId?: number }
        return databaseId === undefined ? [] : [[`${type}:${databaseId}`, { ...change, ...(part as object) }]]
      }),
    ),
  )
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'" }

/** Reads a public page as a browser shows its texts. */
export async function readPage(address: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(address, { redirect: 'manual' })
  const html = await answer.text()
  const text = html.replaceAll(/&(amp|lt|gt|quot|#39|#x27);/g, (_all, name: string) => entities[name] ?? '')
  return { status: answer.status, text }
}
