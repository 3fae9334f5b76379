import { expect, test } from 'vitest'
import { listHeaders, type ListPage } from '../../../src/http/rest/list-headers.ts'

const address = 'https://api.example/merchant/api/things'

function headersOf(page: ListPage, query = ''): Record<string, string> {
  const headers = new Map(listHeaders(address, new URLSearchParams(query), page))
  const links = (headers.get('Link') ?? '').split(', ').map((link) => {
    const [, there = '', rel = ''] = /^<([^>]+)>; rel="(\w+)"$/.exec(link) ?? []
    expect(there.split('?')[0]).toBe(address)
    return [rel, there.split('?')[1] ?? '']
  })
  return { total: headers.get('X-Total-Count') ?? '', ...Object.fromEntries(links) }
}

test.each<[string, ListPage, Record<string, number>]>([
  ['the first page', { total: 45, limit: 20, offset: 0 }, { first: 0, next: 20, last: 40 }],
  ['a page in the middle', { total: 45, limit: 20, offset: 20 }, { first: 0, prev: 0, next: 40, last: 40 }],
  ['the last page', { total: 45, limit: 20, offset: 40 }, { first: 0, prev: 20, last: 40 }],
  ['pages that are full to the end', { total: 40, limit: 20, offset: 0 }, { first: 0, next: 20, last: 20 }],
  ['the only page', { total: 20, limit: 20, offset: 0 }, { first: 0, last: 0 }],
  ['an empty list', { total: 0, limit: 20, offset: 0 }, { first: 0, last: 0 }],
  ['a page behind the end', { total: 45, limit: 20, offset: 1_000 }, { first: 0, prev: 40, last: 40 }],
  ['a page behind an empty list', { total: 0, limit: 20, offset: 5 }, { first: 0, prev: 0, last: 0 }],
  ['steps of its own', { total: 45, limit: 20, offset: 5 }, { first: 0, prev: 0, next: 25, last: 25 }],
])('%s', (_name, page, offsets) => {
  const { total, ...links } = headersOf(page)
  expect(total).toBe(String(page.total))
  expect(links).toEqual(
    Object.fromEntries(Object.entries(offsets).map(([rel, at]) => [rel, `limit=${page.limit}&offset=${at}`])),
  )
})

test('links keep the filters, in a form that a header can carry', () => {
  const links = headersOf({ total: 3, limit: 2, offset: 0 }, 'category=supplier&q=é>,"&limit=2&offset=0')
  expect(links['next']).toBe('category=supplier&q=%C3%A9%3E%2C%22&limit=2&offset=2')
})

test('an absurdly long address is left out of the links', () => {
  const names = listHeaders(address, new URLSearchParams({ q: 'x'.repeat(9_000) }), {
    total: 45,
    limit: 20,
    offset: 20,
  }).map(([name]) => name)
  expect(names).toEqual(['X-Total-Count'])
})
