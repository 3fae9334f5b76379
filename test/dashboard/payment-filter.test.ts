import { describe, expect, test } from 'vitest'
import { apiFilterOf, isSearchable, readFilter, writeFilter } from '../../src/dashboard/payment-filter.ts'

// The filter of payments in the address, and in the form of the API.

const every = {
  search: '70 00',
  status: 'waiting',
  kind: 'out',
  operator: 'OperatorB',
  from: '2026-11-01',
  to: '2026-11-30',
  min: '1000',
  max: '5000',
  link: '12',
}

describe('the address', () => {
  test('a filter is read as it was written', () => {
    expect(readFilter(writeFilter(every))).toEqual(every)
    expect(writeFilter(readFilter(''))).toBe('')
  })

  test.each([
    'status=FAILED',
    'kind=none',
    'operator=OperatorE',
    'from=yesterday',
    'to=2026-1-1',
    'to=2026-99-99',
    'from=2026-02-30',
    'from=0000-01-01',
    'to=9999-12-31',
    'min=-5',
    'max=1e9',
    'link=abc',
    'other=1',
  ])('%s is no condition', (query) => {
    expect(writeFilter(readFilter(query))).toBe('')
  })
})

describe('the API', () => {
  const of = (query: string, timeZone = 'Africa/Bamako') => apiFilterOf(readFilter(query), timeZone)

  test('an empty filter selects collections and deposits', () => {
    expect(of('')).toEqual({ transactionType: ['PAY', 'DEPOSIT'] })
  })

  test('by a link only collections come in, whose total needs no type', () => {
    expect(of('link=12')).toEqual({ paymentLink: '12' })
    expect(of('link=12&kind=in')).toEqual({ paymentLink: '12' })
    expect(of('link=12&kind=out')).toEqual({ paymentLink: '12', transactionType: ['DEPOSIT'] })
  })

  test('each field is a condition', () => {
    expect(apiFilterOf(every, 'Africa/Bamako')).toEqual({
      transactionType: ['DEPOSIT'],
      search: '70 00',
      status: ['PENDING', 'PROCESSING'],
      paymentMethod: ['OperatorB'],
      createdFrom: '2026-11-01T00:00:00.000Z',
      createdTo: '2026-11-30T23:59:59.999Z',
      amountMin: 1_000,
      amountMax: 5_000,
      paymentLink: '12',
    })
  })

  test.each([
    ['Asia/Tokyo', '2026-10-24T15:00:00.000Z', '2026-10-25T14:59:59.999Z'],
    ['America/Sao_Paulo', '2026-10-25T03:00:00.000Z', '2026-10-26T02:59:59.999Z'],
    // The day has 25 hours.
    ['Europe/Paris', '2026-10-24T22:00:00.000Z', '2026-10-25T22:59:59.999Z'],
  ])('a day is the one in %s', (timeZone, createdFrom, createdTo) => {
    expect(of('from=2026-10-25&to=2026-10-25', timeZone)).toMatchObject({ createdFrom, createdTo })
  })

  test('a search that the service would refuse is not sent', () => {
    expect(of('search=a-1')).toEqual(of(''))
    expect([isSearchable(''), isSearchable('a 1'), isSearchable('é-à-1')]).toEqual([true, false, true])
  })
})
