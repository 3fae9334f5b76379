import { describe, expect, test } from 'vitest'
import { released, sentOnce } from '../../kit/approvals.ts'
import { batchApprovalsOn } from '../../kit/batch-approvals.ts'
import { bulkOn } from '../../kit/bulk.ts'
import { openFixture } from '../../kit/fixture.ts'

// Approvals of batches that race with another change, on two services over one database.
const fixture = await openFixture()
const sibling = await fixture.sibling()
const { cancel, ended, money, summary } = bulkOn(fixture)
const { ask, team, waiting, approve, reject, paidOut, verdictsOf } = batchApprovalsOn(fixture)

describe('races have one end', () => {
  const rounds = 5

  test.each([
    { required: 2, at: 2 },
    { required: 2, at: 3 },
    { required: 3, at: 3 },
  ])('$at approve at once where $required are needed: $required count, it is sent once', async (race) => {
    const { merchant, person } = await team(race.required)
    const people = await Promise.all(Array.from({ length: race.at }, () => person()))
    const batches = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    const all = batches.map(async (batch) => {
      const answers = await Promise.all(
        people.map((by, n) => approve(by, batch, n % 2 ? sibling : fixture.url)),
      )
      expect(answers.filter(({ __typename: type }) => type === 'Batch')).toHaveLength(race.required)
      expect(answers.filter(({ code }) => code === 'STATE_CONFLICT')).toHaveLength(race.at - race.required)
      expect(await verdictsOf(batch)).toHaveLength(race.required)
      expect(await ended(merchant, batch.id)).toMatchObject({ status: 'completed', approval: 'approved' })
      expect(await paidOut(batch)).toEqual(sentOnce)
    })
    await Promise.all(all)
    expect(await money(merchant)).toEqual({ available: 100_000 - rounds * 2_000, reserved: 0 })
  })

  test('the same person many times at once counts once', async () => {
    const { merchant, person } = await team(2)
    const [batch, by] = [await waiting(merchant), await person()]
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_none, n) => approve(by, batch, n % 2 ? sibling : fixture.url)),
    )
    expect(answers.filter(({ __typename: type }) => type === 'Batch')).toHaveLength(1)
    expect(await summary(merchant, batch.id)).toMatchObject({ approval: 'pending' })
  })

  test('approve against reject', async () => {
    const { merchant, person } = await team()
    const [yes, no] = [await person(), await person()]
    const batches = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    await Promise.all(
      batches.map(async (batch, n) => {
        const [first, second] = n % 2 ? [fixture.url, sibling] : [sibling, fixture.url]
        const asked = [approve(yes, batch, first), reject(no, batch, 'no', second)] as const
        const [approved, rejected] = await Promise.all(asked)
        const isPaid = approved['__typename'] === 'Batch'
        expect(rejected).toMatchObject(isPaid ? { code: 'STATE_CONFLICT' } : { status: 'CANCELLED' })
        expect(approved).toMatchObject(isPaid ? { __typename: 'Batch' } : { code: 'STATE_CONFLICT' })
        expect(await ended(merchant, batch.id)).toMatchObject({ status: isPaid ? 'completed' : 'cancelled' })
        expect(await paidOut(batch)).toEqual(isPaid ? sentOnce : released)
        expect(await verdictsOf(batch)).toHaveLength(1)
      }),
    )
  })

  test('approve against cancel', async () => {
    const { merchant, person } = await team()
    const by = await person()
    const batches = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    await Promise.all(
      batches.map(async (batch, n) => {
        const asked = [approve(by, batch, n % 2 ? sibling : fixture.url), cancel(merchant, batch.id)] as const
        const [approved, cancelled] = await Promise.all(asked)
        // An approved batch may still be cancelled: then the recipients already sent are paid, and the rest
        // is not.
        expect(approved).toMatchObject(cancelled.status === 200 ? {} : { __typename: 'Batch' })
        const end = await ended(merchant, batch.id)
        const isPaid = end['succeeded_count'] === 1
        expect(end['status']).toBe(cancelled.status === 200 ? 'cancelled' : 'completed')
        expect(await paidOut(batch)).toEqual(isPaid ? sentOnce : released)
      }),
    )
  })

  test('approve against the removal of the approver', async () => {
    const { merchant, person } = await team()
    const boss = await person('owner')
    const batches = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    await Promise.all(
      batches.map(async (batch) => {
        const by = await person()
        await ask(by.token, '{ me { role } }', {}, sibling)
        const removal = `mutation { removeMember(id: ${by.memberId}) { __typename } }`
        const [approved] = await Promise.all([approve(by, batch, sibling), ask(boss.token, removal, {})])
        const isPaid = approved['__typename'] === 'Batch'
        expect(approved).toMatchObject(isPaid ? { __typename: 'Batch' } : { code: 'UNAUTHENTICATED' })
        expect(await verdictsOf(batch)).toHaveLength(isPaid ? 1 : 0)
        const end = isPaid ? await ended(merchant, batch.id) : await summary(merchant, batch.id)
        expect(end['status']).toBe(isPaid ? 'completed' : 'pending_approval')
      }),
    )
  })
})
