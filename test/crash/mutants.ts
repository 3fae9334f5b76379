import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One change of a source file: a text that occurs exactly once, and the faulty text that replaces it. */
export interface Edit {
  /** A path from the root, or `name()` for the file of a SQL function. */
  file: string
  find: string
  replace: string
}

/** A bug that is planted in a copy of the sources, never in the sources themselves. */
export interface CrashMutant {
  name: string
  edits: readonly Edit[]
}

const withoutLocks: readonly Edit[] = [
  // No caller is first any more: two callers that read "pending" at one moment both settle.
  {
    file: 'lock_collections()',
    find: 'WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE), NULL);',
    replace: 'WHERE t.id = ANY (ids)), NULL);',
  },
  // The pause between reading and writing is as long as a round trip to the database,
  {
    file: 'settle_many()',
    find: '    ORDER BY i.id, i.ordinal\n  ), allowed AS (',
    replace: '    WHERE (SELECT pg_sleep(0.02)) IS NOT NULL ORDER BY i.id, i.ordinal\n  ), allowed AS (',
  },
  // each call settles without the shared statement,
  {
    file: 'src/resources/transactions/settle.ts',
    find: 'const settlement = await services.sharedStatements.run(settling, { transactionId, outcome })',
    replace: `const [alone] = await settleMany(
    services.database.pool,
    [{ transactionId, toStatus: outcome.status, ...outcomeArguments(outcome) }],
    { lateCheckMs: limits.lateCheckMs },
  )
  invariant(alone, 'settle_many gives one row')
  const settlement = { ...alone, tied: false }`,
  },
  // two processes may ask at one moment, because neither the interval nor the single flight prevents it,
  {
    file: 'take_due()',
    find: ' OR coalesce(r.query_after <= now(), true))',
    replace: ' OR true)',
  },
  {
    file: 'take_due()',
    find: ' AND coalesce(r.query_after <= now(), true)\n        LIMIT 1',
    replace: '\n        LIMIT 1',
  },
  {
    file: 'src/requests/due.ts',
    find: 'singleFlight(services, name, () => checkRequest(services, request))',
    replace: 'checkRequest(services, request)',
  },
  // every copy of a callback makes it due and claims it, in a statement of its own.
  {
    file: 'src/requests/record-callback.ts',
    find: 'await sharedStatements.run(recordTogether, item)\n  if (recorded.isRecorded) return recorded',
    replace: 'null',
  },
  {
    file: 'record_callbacks()',
    find: 'i.has_slot AND (r.query_after IS NULL OR r.query_after <= now()) AS claims',
    replace: 'i.has_slot AS claims',
  },
  {
    file: 'record_callbacks()',
    find: "WHERE i.n = ANY (fresh) AND (r.state <> 'settled' OR i.outcome <> 'settled')",
    replace: 'WHERE i.request_id = ANY (locked)',
  },
]

/** The bugs that the harness must find, each as a programmer might write it. */
export const mutants: readonly CrashMutant[] = [
  {
    name: 'answer before commit',
    edits: [
      {
        file: 'src/resources/transactions/collect.ts',
        find: 'const rows = await collectMany(pool, items, {',
        replace:
          "const client = await pool.connect()\n    await client.query('BEGIN')\n" +
          '    const rows = await collectMany(client, items, {',
      },
      {
        file: 'src/resources/transactions/collect.ts',
        find: '    })\n    return rows as Made[]\n',
        replace:
          '    }).catch((error: unknown) => {\n      client.release(true)\n      throw error\n    })\n' +
          '    const end = (error?: Error) => client.release(error)\n' +
          "    setTimeout(() => client.query('COMMIT').then(() => end(), end), 40)\n" +
          '    return rows as Made[]\n',
      },
    ],
  },
  {
    name: 'payout sent before it is begun',
    edits: [
      {
        file: 'src/resources/payouts/send.ts',
        find: 'const rows = await beginPayouts(pool, {',
        replace:
          "const client = await pool.connect()\n  await client.query('BEGIN')\n" +
          '  const rows = await beginPayouts(client, {',
      },
      {
        file: 'src/resources/payouts/send.ts',
        find: ' operator, take, ...terms })\n',
        replace:
          ' operator, take, ...terms })' +
          '.catch((error: unknown) => {\n    client.release(true)\n    throw error\n  })\n' +
          '  const end = (error?: Error) => client.release(error)\n' +
          "  setTimeout(() => client.query('COMMIT').then(() => end(), end), 60)\n",
      },
    ],
  },
  {
    name: 'recipients sent before they are begun',
    edits: [
      {
        file: 'src/resources/batches/send.ts',
        find: '  const rows = await beginRecipients(pool, {',
        replace:
          "  const client = await pool.connect()\n  await client.query('BEGIN')\n" +
          '  const rows = await beginRecipients(client, {',
      },
      {
        file: 'src/resources/batches/send.ts',
        find: '  })\n  const deadlines = new Map(',
        replace:
          '  }).catch((error: unknown) => {\n    client.release(true)\n    throw error\n  })\n' +
          '  const end = (error?: Error) => client.release(error)\n' +
          "  setTimeout(() => client.query('COMMIT').then(() => end(), end), 200)\n" +
          '  const deadlines = new Map(',
      },
    ],
  },
  {
    name: 'a cancelled payout stays set aside',
    edits: [
      {
        file: 'cancel_batch()',
        find: "IF before <> 'draft' AND freed > 0 THEN",
        replace: "IF before <> 'draft' AND freed > 0 AND before <> 'processing' THEN",
      },
    ],
  },
  {
    name: 'timeout means failed',
    edits: [
      {
        file: 'src/requests/decide.ts',
        find: "      const action = record('doubt', { handle: outcome.handle, nextCheckMs: pause })\n",
        replace:
          "      const refusal = { reason: 'OPERATOR_UNAVAILABLE', code: 'timeout' } as const\n" +
          "      const finalOutcome = { status: 'failed', source: 'initiate', refusal } as const\n" +
          "      const action = { do: 'settle', finalOutcome } as const\n",
      },
    ],
  },
  {
    name: 'no fence',
    edits: [
      {
        file: 'claim_send()',
        find: 'AND attempt = known_attempt AND fence_until <= coalesce(known_at, now())\n',
        replace: '\n',
      },
    ],
  },
  {
    name: 'resend without query',
    edits: [
      {
        file: 'src/requests/check.ts',
        find: "state === 'unsent' ? null : await operator.query(",
        replace: "state !== 'accepted' ? null : await operator.query(",
      },
    ],
  },
  {
    name: 'event after commit',
    edits: [
      {
        file: 'settle_many()',
        find: 'PERFORM append_events(events || link_use_events(events), at);',
        replace: 'PERFORM append_events(link_use_events(events), at);',
      },
      {
        file: 'append_events()',
        find: 'CREATE OR REPLACE FUNCTION append_events',
        replace: '-- Granted to payments_service.\nCREATE OR REPLACE FUNCTION append_events',
      },
      {
        file: 'src/resources/transactions/settle.ts',
        find: "  invariant(rows.length === items.length, 'every transaction that is settled exists')\n",
        replace: `  await pool.query(
    \`SELECT append_events(array_agg((merchant_id,
        CASE status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || status::text END,
        jsonb_build_object('transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF',
          'payment_method', payment_method, 'customer_phone', customer_phone, 'status', status))::new_event),
        now())
      FROM transaction WHERE id = ANY ($1)\`,
    [items.filter((_, ordinal) => rows[ordinal]?.moved).map((i) => i.transactionId)],
  )
`,
      },
    ],
  },
  {
    name: 'read, then write',
    edits: [
      ...withoutLocks,
      {
        file: 'prisma/migrations/0001_baseline/migration.sql',
        find: 'CREATE UNIQUE INDEX ledger_entry_origin_step_key',
        replace: 'CREATE INDEX ledger_entry_origin_step_key',
      },
      {
        file: 'fund_merchant()',
        find: 'ON CONFLICT (origin, step) DO NOTHING',
        replace: 'ON CONFLICT DO NOTHING',
      },
    ],
  },
  {
    name: 'a link’s place is counted without FOR UPDATE',
    edits: [
      {
        file: 'collect_by_link()',
        find: 'WHERE l.id = link FOR UPDATE OF l;',
        replace: 'WHERE l.id = link;',
      },
    ],
  },
  // The unique index keeps the money right. Moves without money are emitted twice, and the events show it.
  { name: 'read, then write, behind the unique index', edits: withoutLocks },
  {
    name: 'the disk is written later',
    edits: [
      {
        file: 'src/database/client.ts',
        find: "'-c jit=off',",
        replace: "'-c jit=off',\n    '-c synchronous_commit=off',",
      },
    ],
  },
  {
    name: 'a reader that comes back skips one',
    edits: [
      {
        file: 'src/events/feed.ts',
        find: 'WHERE merchant_id = $1 AND position > $2 ORDER BY position LIMIT $3',
        replace: 'WHERE merchant_id = $1 AND position > $2 + 1 ORDER BY position LIMIT $3',
      },
    ],
  },
]

/**
 * Makes a copy of the sources with the bug in it, until `remove`.
 * @throws Error where an edit no longer fits
 */
export function mutatedTree(root: string, mutant: CrashMutant): { tree: string; remove: () => void } {
  const copy = copyTree(root, ['src', 'prisma', 'test/crash', 'package.json'])
  try {
    for (const edit of mutant.edits) applyEdit(copy.tree, mutant.name, edit)
    return copy
  } catch (error) {
    copy.remove()
    throw error
  }
}

/** Copies some parts of the repository, with a link to its packages, until `remove`. */
export function copyTree(root: string, parts: readonly string[]): { tree: string; remove: () => void } {
  const tree = mkdtempSync(join(tmpdir(), 'merchant-payments-planted-'))
  for (const part of parts) cpSync(join(root, part), join(tree, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return { tree, remove: () => rmSync(tree, { recursive: true, force: true }) }
}

/**
 * Changes a file of a copy.
 * @returns a function that undoes the change.
 * @throws Error where the edit no longer fits
 */
export function applyEdit(tree: string, name: string, edit: Edit): () => void {
  const { path, text, changed } = readEdit(tree, name, edit)
  writeFileSync(path, changed)
  return () => writeFileSync(path, text)
}

/**
 * Reads the file that an edit changes, before and after. Line breaks and indentation may differ, because the
 * formatter changes them.
 * @throws Error where the edit no longer fits
 */
export function readEdit(tree: string, name: string, { file, find, replace }: Edit) {
  const path = placeOf(tree, file)
  const text = readFileSync(path, 'utf8')
  const words = find
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const found = [...text.matchAll(new RegExp(words.join('\\s+'), 'g'))]
  if (found.length !== 1 || !found[0])
    throw new Error(`${name}: stands ${found.length} times in ${file}, and must once: ${find}`)
  const [{ index, 0: ordinal }] = found as [RegExpExecArray]
  return { path, text, changed: text.slice(0, index) + replace + text.slice(index + ordinal.length) }
}

/** Finds the file of an edit: a path from the root, or the file of a SQL function. */
function placeOf(tree: string, file: string): string {
  if (!file.endsWith('()')) return join(tree, file)
  const paths = globSync(`src/**/${file.slice(0, -2)}.sql`, { cwd: tree })
  if (paths.length !== 1) throw new Error(`${paths.length} files define ${file}`)
  return join(tree, paths[0] ?? '')
}
