import { describe, expect, test } from 'vitest'
import { connect, edgeOf, readPage } from '../../src/shared/page.ts'
import { DomainError } from '../../src/shared/errors.ts'

/** The page of a list with the ids 9 to 1, newest first. */
function list(args: Parameters<typeof readPage>[0]) {
  const page = readPage(args)
  const rows = Array.from({ length: 9 }, (_none, nth) => ({ id: BigInt(9 - nth) })).filter(
    ({ id }) => (page.after === null || id < page.after) && (page.before === null || id > page.before),
  )
  if (page.isBackward) rows.reverse()
  const { edges, pageInfo } = connect(page, rows.slice(page.skip, page.skip + page.take).map(edgeOf))
  const { hasNextPage, hasPreviousPage } = pageInfo
  return { ids: edges.map(({ node }) => Number(node.id)), hasNextPage, hasPreviousPage }
}

describe('a page of a list', () => {
  test.each([
    [{ first: 2 }, [9, 8], true, false],
    [{ first: 2, after: '8' }, [7, 6], true, true],
    [{ first: 9 }, [9, 8, 7, 6, 5, 4, 3, 2, 1], false, false],
    [{ first: 2, offset: 3 }, [6, 5], true, false],
    [{ last: 2 }, [2, 1], false, true],
    [{ last: 2, before: '2' }, [4, 3], true, true],
    [{ before: '6' }, [9, 8, 7], false, false],
    [{ first: 20, last: 2 }, [2, 1], false, true],
    [{ first: 2, before: '4' }, [9, 8], true, false],
    [{ last: 2, after: '6' }, [2, 1], false, true],
    [{ first: 5, after: '8', before: '4' }, [7, 6, 5], false, true],
    [{ first: 2, after: '8', before: '4' }, [7, 6], true, true],
    [{ last: 2, after: '8', before: '4' }, [6, 5], true, true],
  ])('%o gives %o', (args, ids, hasNextPage, hasPreviousPage) => {
    expect(list(args)).toEqual({ ids, hasNextPage, hasPreviousPage })
  })

  test('cursors of another form, also the older base64 ones, are refused with their argument', () => {
    for (const cursor of ['', '-1', '1.5', btoa('GPC:J:12'), '1234567890123456789']) {
      expect.soft(problemsOf({ after: cursor })).toEqual(['after'])
      expect.soft(problemsOf({ before: cursor, last: 0 })).toEqual(['last', 'before'])
    }
  })

  test('sizes outside 1 to 100, both sizes, and an offset below 0 are refused with their names', () => {
    for (const size of [-1, 0, 101]) {
      expect.soft(problemsOf({ first: size })).toEqual(['first'])
      expect.soft(problemsOf({ last: size })).toEqual(['last'])
    }
    expect(problemsOf({ first: 1, last: 1, offset: -1 })).toEqual(['last', 'offset'])
  })
})

function problemsOf(args: Parameters<typeof readPage>[0]): string[] {
  try {
    readPage(args)
  } catch (error) {
    if (error instanceof DomainError) return (error.detail.problems ?? []).map(({ field }) => field)
    throw error
  }
  return []
}
