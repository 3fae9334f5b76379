import type { ExecutedOrder } from './operator.ts'
import type { Snapshot, TransactionRow } from './snapshot.ts'

/** Checks one invariant. @returns a sentence for each violation */
type Check = (snapshot: Snapshot, isOver: boolean) => string[]

/**
 * The invariants of every snapshot. With `isOver` the run has ended: nothing is under way any more, and open
 * payments must be settled too.
 */
export const invariants: Readonly<Record<string, Check>> = {
  'an acknowledged order is on record, as the client asked for it': ({
    acknowledgements,
    transactions,
    payouts,
  }) => {
    const records = { transaction: recordsOf(transactions), payout: recordsOf(payouts) }
    return acknowledgements.flatMap(({ order, id, status }) => {
      const { byId, names } = records[order.kind]
      if (id === null)
        return names.has(nameOf(order)) ? [`${order.reference}: said not recorded, and is`] : []
      const row = byId.get(id)
      if (!row) return [`${order.reference}: ${status} was answered, and it is not on record`]
      const same =
        nameOf(row) === nameOf(order) &&
        row.amount === order.amount &&
        row.customer_phone === order.phone &&
        row.payment_method === order.operator
      return same ? [] : [`${order.reference}: recorded otherwise: ${JSON.stringify(row)}`]
    })
  },

  'one transaction, and one payout, per reference of a merchant': ({ transactions, payouts }) => [
    ...repeated(transactions.map(nameOf)),
    ...repeated(payouts.map(nameOf)),
  ],

  'the ledger adds up': ({ ledgerProblems, entries, balances }) => {
    const sums = new Map<string, number>()
    const add = (key: string, amount: number) => sums.set(key, (sums.get(key) ?? 0) + amount)
    for (const { merchant_id: id, debit, credit, amount } of entries) {
      add(`${id} ${debit}`, -amount)
      add(`${id} ${credit}`, amount)
    }
    return [
      ...ledgerProblems,
      ...balances.flatMap(({ merchant_id: id, available, reserved }) =>
        available === (sums.get(`${id} available`) ?? 0) && reserved === (sums.get(`${id} reserved`) ?? 0)
          ? []
          : [`merchant ${id}: ${available} available, ${reserved} reserved, and its movements say otherwise`],
      ),
    ]
  },

  'every step of a transaction happens once': ({ entries }) =>
    repeated(entries.map(({ origin, step }) => `${origin} ${step}`)),

  'an operator executes each order at most once': ({ operators }) =>
    Array.from(operators).flatMap(([identity, executions]) => {
      const paid = executions.filter(({ state }) => state === 'completed' || state === 'reversed')
      const open = executions.filter(({ state }) => state === 'pending')
      return paid.length > 1 || open.length > 1 || paid.length + open.length > 1
        ? [`${identity}: ${JSON.stringify(executions)}`]
        : []
    }),

  'an operator knows no order that is not on record': ({ executed, operators, ...snapshot }) => {
    const { transactions, payouts, recipients } = snapshot
    const known = new Set([...transactions, ...payouts, ...recipients].map(({ identity }) => identity))
    return executed.flatMap((identity) =>
      known.has(identity) ? [] : [`${identity}: ${JSON.stringify(operators.get(identity))}`],
    )
  },

  'a final status agrees with the operator': ({ transactions, payouts, recipients, operators }, isOver) =>
    [...transactions, ...payouts, ...recipients].flatMap((row) => {
      const executions = (row.identity === null ? null : operators.get(row.identity)) ?? []
      const complaint = disagreement(row, executions, isOver)
      return complaint
        ? [`${row.kind} ${row.id}: ${row.status}, ${complaint}: ${JSON.stringify(executions)}`]
        : []
    }),

  'each outcome is emitted once': ({ transactions, events }) => {
    const occurrences = new Map<string, number>()
    for (const { transaction_id: id, type } of events)
      occurrences.set(`${id} ${type}`, (occurrences.get(`${id} ${type}`) ?? 0) + 1)
    return transactions.flatMap(({ kind, id, status, refunded }) => {
      const [word, begun, paid] =
        kind === 'pay' ? ['payment', 'pending', 'received'] : ['deposit', 'processing', 'completed']
      const count = (type: string) => occurrences.get(`${id} ${type}`) ?? 0
      const isPaid = status === 'success' || status === 'reversed'
      const complaints = [
        count(`${word}_${begun}`) === 1 ? [] : [`${count(`${word}_${begun}`)} x ${word}_${begun}`],
        count(`${word}_${paid}`) === (isPaid ? 1 : 0)
          ? []
          : [`${count(`${word}_${paid}`)} x ${word}_${paid}`],
        ...(['failed', 'expired', 'cancelled', 'reversed'] as const).map((end) => {
          const times = count(`${word}_${end}`)
          // Given back by refunds, and then taken back by the operator as well.
          const most = end === 'reversed' && refunded > 0 ? 2 : 1
          return times > most || (status === end && times === 0) ? [`${times} x ${word}_${end}`] : []
        }),
      ].flat()
      return complaints.map((words) => `transaction ${id} is ${status}: ${words}`)
    })
  },

  'no balance below its floor, and nothing reserved once all is over': ({ balances }, isOver) =>
    balances.flatMap(({ merchant_id: id, available, reserved }) =>
      available < 0 || reserved < 0 || (isOver && reserved !== 0)
        ? [`merchant ${id}: ${available} available, ${reserved} reserved`]
        : [],
    ),

  'a batch is as acknowledged, counts its recipients right, and ends once': (
    { batches, batchAcknowledgements },
    isOver,
  ) => {
    const byId = new Map(batches.map((batch) => [batch.id, batch]))
    return [
      ...batchAcknowledgements.flatMap(({ id, count, began, cancelled }) => {
        const batch = byId.get(id)
        const isKept =
          batch &&
          batch.size >= count &&
          (!began || batch.started) &&
          (!cancelled || batch.status !== 'draft')
        return isKept ? [] : [`batch ${id}: ${JSON.stringify({ count, began, cancelled, batch })}`]
      }),
      ...batches.flatMap((batch) => {
        const isRight =
          batch.counted === batch.found &&
          batch.done === (batch.started && batch.ended ? 1 : 0) &&
          !(isOver && batch.status === 'processing')
        return isRight ? [] : [`batch ${batch.id}: ${JSON.stringify(batch)}`]
      }),
    ]
  },

  'an answered status is never taken back': ({ acknowledgements, transactions, payouts }) => {
    const records = { transaction: recordsOf(transactions), payout: recordsOf(payouts) }
    const later: Readonly<Record<string, readonly string[]>> = {
      success: ['success', 'reversed'],
      failed: ['failed'],
      expired: ['expired', 'success', 'reversed'],
      cancelled: ['cancelled'],
    }
    return acknowledgements.flatMap(({ order, id, status }) => {
      const stands = id === null ? undefined : records[order.kind].byId.get(id)?.status
      const allowed = later[status]
      return stands !== undefined && allowed && !allowed.includes(stands)
        ? [`${order.kind} ${id} was answered as ${status} and is ${stands}`]
        : []
    })
  },

  'the positions of a merchant are 1, 2, 3, ...': ({ events, heads }, isOver) => {
    const next = new Map<number, number>()
    const gaps = events.flatMap(({ merchant_id: id, position }) => {
      const expected = (next.get(id) ?? 0) + 1
      if (position === null) return isOver ? [`merchant ${id}: an event was never numbered`] : []
      next.set(id, position)
      return position === expected ? [] : [`merchant ${id}: ${position} instead of ${expected}`]
    })
    const ends = heads.filter(({ merchant_id: id, position }) => next.get(id) !== position)
    return [
      ...gaps,
      ...ends.map(({ merchant_id: id, position }) => `merchant ${id}: no event at its end, ${position}`),
    ]
  },

  'every reader had every event once, in order': ({ readers, events }, isOver) =>
    readers.flatMap(({ name, merchantId, recorded }) => {
      // The events of payouts are in another stream, with the same positions.
      const own = events.filter(
        (row) => row.merchant_id === merchantId && row.position !== null && row.transaction_id !== null,
      )
      const wrong = recorded.findIndex((event, index) => {
        const row = own[index]
        const words = row && [row.position, row.reference, row.type, row.status].join(' ')
        const { sequence, reference, type, status } = event
        return words !== [sequence, reference, type.toLowerCase(), status.toLowerCase()].join(' ')
      })
      if (wrong >= 0)
        return [`${name}: ${JSON.stringify(recorded[wrong])} is no. ${wrong + 1} of merchant ${merchantId}`]
      return isOver && recorded.length !== own.length
        ? [`${name}: ${recorded.length} of ${own.length} events of merchant ${merchantId}`]
        : []
    }),

  'a link has no more attempts and payments than places': ({ overfullLinks }) =>
    overfullLinks.map(({ id, places, taken }) => `link ${id}: ${taken} at once, of at most ${places}`),

  'our clearing accounts are the operators’ books': ({ entries, operators }, isOver) => {
    const ours = new Map<string, number>()
    const theirs = new Map<string, number>()
    const add = (sums: Map<string, number>, name: string, amount: number) =>
      sums.set(name, (sums.get(name) ?? 0) + amount)
    for (const { debit, credit, step, amount } of entries) {
      const isOut = step === 'post' || (step === 'reverse' && credit === 'available')
      add(ours, `${debit} ${isOut}`, isOut ? -amount : amount)
      add(ours, `${credit} ${isOut}`, isOut ? amount : -amount)
    }
    // A payment that an operator reversed a moment ago may still be on our books.
    for (const { operator, state, amount, isOut } of [...operators.values()].flat())
      if (state === 'completed' || (state === 'reversed' && !isOver))
        add(theirs, `${operator} ${isOut}`, amount)
    const sides = ['A', 'B', 'C', 'D'].flatMap((letter) => [
      { letter, isOut: false },
      { letter, isOut: true },
    ])
    return sides.flatMap(({ letter, isOut }) => {
      const mine = ours.get(`clearing_operator_${letter.toLowerCase()} ${isOut}`) ?? 0
      const own = theirs.get(`Operator${letter} ${isOut}`) ?? 0
      const words = `Operator${letter} ${isOut ? 'paid' : 'took'} ${own}, we say ${mine}`
      return (isOver ? mine === own : mine <= own) ? [] : [words]
    })
  },
}

/** How the record and the operator's book differ; null where they do not. */
function disagreement(
  { status, settled_amount: settled, refunded }: TransactionRow,
  executions: readonly ExecutedOrder[],
  isOver: boolean,
): string | null {
  const paid = executions.filter(({ state }) => state === 'completed' || state === 'reversed')
  const isOpen = executions.some(({ state }) => state === 'pending')
  const sum = paid.reduce((total, { amount }) => total + amount, 0)
  const isTakenBack = paid.some(({ state }) => state === 'reversed')
  if (status === 'success' || status === 'reversed') {
    if (paid.length === 0 || sum !== settled) return 'and the operator has other money'
    // The operator need not have reversed a payment that refunds gave back.
    if (status === 'reversed' && refunded >= settled) return null
    return isTakenBack === (status === 'reversed') || (isTakenBack && !isOver)
      ? null
      : 'and was it taken back?'
  }
  if (status === 'failed')
    return paid.length > 0 || isOpen ? 'and the operator may take or has the money' : null
  if (!isOver) return null
  if (status === 'pending' || status === 'processing') return 'still, after the run'
  return paid.length > 0 ? 'and the operator has the money' : null
}

function recordsOf(rows: readonly TransactionRow[]) {
  return { byId: new Map(rows.map((row) => [row.id, row])), names: new Set(rows.map(nameOf)) }
}

function nameOf(
  row: { reference: string; merchant_id: number } | { reference: string; merchantId: number },
): string {
  return `${'merchantId' in row ? row.merchantId : row.merchant_id} ${row.reference}`
}

function repeated(names: readonly string[]): string[] {
  const seen = new Set<string>()
  return names.filter((name) => seen.size === seen.add(name).size)
}
