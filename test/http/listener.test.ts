import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { createRouter } from '../../src/http/listener.ts'
import type { HttpExchange, RouteRow } from '../../src/http/request.ts'
import { startTestApp } from '../kit/app.ts'

const { app } = await startTestApp()

/** The row that answers, with the parts of the path; null where none answers. */
function ask(rows: readonly Omit<RouteRow, 'serve'>[], method: string, url: string) {
  let served: object | null = null
  const route = createRouter(
    app.services,
    rows.map((row) => ({
      ...row,
      serve: (name) =>
        name === 'GET'
          ? async ({ params }: HttpExchange) => void (served = { path: row.path, ...params })
          : null,
    })),
  )
  const message = { method, url, headers: {}, socket: {}, complete: true } as unknown as IncomingMessage
  const isThere = route(message, {} as ServerResponse)
  expect(isThere).toBe(served !== null)
  return served
}

const rows = [
  { path: '/batches/{id}' },
  { path: '/batches/template.csv' },
  { path: '/codes/{id}.svg', part: '\\w{1,4}' },
]

test.each([
  ['GET', '/batches/12', { path: '/batches/{id}', id: '12' }],
  ['HEAD', '/batches/12?x=1', { path: '/batches/{id}', id: '12' }],
  ['GET', '/batches/a%20b', { path: '/batches/{id}', id: 'a b' }],
  ['GET', '/batches/%zz', { path: '/batches/{id}', id: '%zz' }],
  ['GET', '/batches/template.csv', { path: '/batches/template.csv' }],
  ['GET', '/x/../batches/12', { path: '/batches/{id}', id: '12' }],
  ['GET', '/codes/7.svg', { path: '/codes/{id}.svg', id: '7' }],
  ['GET', '/codes/12345.svg', null],
  ['GET', '/codes/7xsvg', null],
  ['POST', '/batches/12', null],
  ['GET', '/batches/12/more', null],
  ['GET', '/batches', null],
  ['GET', '*', null],
])('%s %s', (method, url, found) => {
  expect(ask(rows, method, url)).toEqual(found)
})
