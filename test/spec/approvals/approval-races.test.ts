import { describe, expect, test } from 'vitest'
import { approvalsOn, released, sentOnce } from '../../kit/approvals.ts'
import { payoutsOn } from '../../kit/payouts.ts'
import { openFixture } from '../../kit/fixture.ts'

// Approvals of payouts that race with another change, on two services over one database.
const fixture = await openFixture()
const sibling = await fixture.sibling()
const { money, record, cancel } = payoutsOn(fixture)
const { ask, team, waiting, approve, reject, becomes, paidOut, verdictsOf } = approvalsOn(fixture)

describe('races have one end', () => {
  const rounds = 6

  test.each([
    { required: 2, at: 2 },
    { required: 2, at: 3 },
    { required: 3, at: 3 },
  ])('$at approve at once where $required are required: $required count, it is sent once', async (race) => {
    const { merchant, person } = await team(race.required)
    const people = await Promise.all(Array.from({ length: race.at }, () => person()))
    const payouts = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    const all = payouts.map(async (payout) => {
      const answers = await Promise.all(
        people.map((by, n) => approve(by, payout, n % 2 ? sibling : fixture.url)),
      )
      expect(answers.filter(({ __typename: type }) => type === 'Payout')).toHaveLength(race.required)
      expect(answers.filter(({ code }) => code === 'STATE_CONFLICT')).toHaveLength(race.at - race.required)
      expect(await verdictsOf(payout)).toHaveLength(race.required)
      await becomes(merchant, payout, { status: 'completed', approval: 'approved' })
      expect(await paidOut(payout)).toEqual(sentOnce)
    })
    await Promise.all(all)
    expect(await money(merchant)).toEqual({ available: 100_000 - rounds * 5_000, reserved: 0 })
  })

  test('the same person many times at once counts once', async () => {
    const { merchant, person } = await team(2)
    const [payout, by] = [await waiting(merchant), await person()]
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_none, n) => approve(by, payout, n % 2 ? sibling : fixture.url)),
    )
    expect(answers.filter(({ __typename: type }) => type === 'Payout')).toHaveLength(1)
    expect(await record(merchant, payout.id)).toMatchObject({ approval: 'pending' })
  })

  test('approve against reject', async () => {
    const { merchant, person } = await team()
    const [yes, no] = [await person(), await person()]
    const payouts = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    await Promise.all(
      payouts.map(async (payout, n) => {
        const [first, second] = n % 2 ? [fixture.url, sibling] : [sibling, fixture.url]
        const asked = [approve(yes, payout, first), reject(no, payout, 'no', second)] as const
        const [approved, rejected] = await Promise.all(asked)
        const isSent = approved['__typename'] === 'Payout'
        expect(rejected).toMatchObject(isSent ? { code: 'STATE_CONFLICT' } : { status: 'CANCELLED' })
        expect(approved).toMatchObject(isSent ? { __typename: 'Payout' } : { code: 'STATE_CONFLICT' })
        await becomes(merchant, payout, { status: isSent ? 'completed' : 'cancelled' })
        expect(await paidOut(payout)).toEqual(isSent ? sentOnce : released)
        expect(await verdictsOf(payout)).toHaveLength(1)
      }),
    )
  })

  test('approve against cancel', async () => {
    const { merchant, person } = await team()
    const by = await person()
    const payouts = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    await Promise.all(
      payouts.map(async (payout, n) => {
        const asked = [
          approve(by, payout, n % 2 ? sibling : fixture.url),
          cancel(merchant, payout.id),
        ] as const
        const [approved, cancelled] = await Promise.all(asked)
        // An approved payout may still be cancelled, until it begins.
        const isSent = cancelled['__typename'] !== 'Payout'
        expect(approved).toMatchObject(isSent ? { __typename: 'Payout' } : {})
        await becomes(merchant, payout, { status: isSent ? 'completed' : 'cancelled' })
        expect(await paidOut(payout)).toEqual(isSent ? sentOnce : released)
      }),
    )
  })

  test('approve against the removal of the approver', async () => {
    const { merchant, person } = await team()
    const boss = await person('owner')
    const payouts = await Promise.all(Array.from({ length: rounds }, () => waiting(merchant)))
    await Promise.all(
      payouts.map(async (payout) => {
        const by = await person()
        await ask(by.token, '{ me { role } }', {}, sibling)
        const removal = `mutation { removeMember(id: ${by.memberId}) { __typename } }`
        const [approved] = await Promise.all([approve(by, payout, sibling), ask(boss.token, removal, {})])
        const isSent = approved['__typename'] === 'Payout'
        expect(approved).toMatchObject(isSent ? { __typename: 'Payout' } : { code: 'UNAUTHENTICATED' })
        await becomes(merchant, payout, isSent ? { status: 'completed' } : { approval: 'pending' })
        expect(await verdictsOf(payout)).toHaveLength(isSent ? 1 : 0)
      }),
    )
  })
})
