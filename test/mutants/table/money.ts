import type { Mutant } from '../mutant.ts'

/** Balances, reservations and limits: what may leave, and how often. */
export const moneyMutants: readonly Mutant[] = [
  {
    name: 'refunds under way are not counted',
    file: 'judge_deposits()',
    find: " WHEN r.status IN ('pending', 'processing') THEN r.amount END), 0)",
    replace: ' END), 0)',
    test: 'ledger/refunds.test.ts',
    finds: '10 parallel refunds of 60 %: one is made, the others find too little left',
  },
  {
    name: 'the answer to an earlier send ends a deposit',
    file: 'settle_deposits()',
    find: '\n      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN',
    replace: ' THEN',
    test: 'requests/overtaken.test.ts',
    finds: 'the first time: it waits for the second, is asked about and paid once',
  },
  {
    name: 'a payout that moved less keeps the rest reserved',
    file: 'reservation_end()',
    find: "'available'::ledger_account, reserved - paid)",
    replace: "'available'::ledger_account, 0::bigint)",
    test: 'ledger/payouts.test.ts',
    finds: 'less than asked',
  },
  {
    name: 'each payout of one call is covered by the whole balance',
    file: 'judge_payouts()',
    find: '    IF NOT item.is_scheduled THEN remaining := remaining - item.amount; END IF;\n',
    replace: '',
    test: 'ledger/payouts.test.ts',
    finds: 'shares a call in order of arrival: each covered payout leaves less for the next',
  },
  {
    name: 'each deposit of one call is covered by the whole balance',
    file: 'judge_deposits()',
    find: '      remaining := remaining - item.amount;\n',
    replace: '',
    test: 'ledger/deposits.test.ts',
    finds: 'shares a call in order of arrival: each covered deposit leaves less for the next',
  },
  {
    name: 'a deposit is made while payments out are halted',
    file: 'judge_deposits()',
    find: "      WHEN item.halted THEN 'halted'\n",
    replace: '',
    test: 'ledger/deposits.test.ts',
    finds: 'never begins while payments out are halted, also where it waited when the halt came',
  },
  {
    name: 'a payout begins under a halt that it waited for',
    file: 'begin_payouts()',
    find:
      'WHERE p.id = ANY (chosen) AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS ' +
      'NULL)\n',
    replace: 'WHERE p.id = ANY (chosen)\n',
    test: 'ledger/payouts.test.ts',
    finds: 'not where the halt or the end of its merchant comes while it waits for the money',
  },
  {
    name: 'a batch is processed while payments out are halted',
    file: 'process_batch()',
    find: "    WHEN EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN 'halted'\n",
    replace: '',
    test: 'spec/bulk/dry-run.test.ts',
    finds: 'no recipient is paid beyond the limits of a token, or while payments out are halted',
  },
  {
    name: 'the batch of a merchant that owes is sent',
    file: 'recipients_due()',
    find:
      '        AND b.merchant_id NOT IN (SELECT o.merchant_id FROM merchant_balance o WHERE ' +
      'o.receivable > 0)\n',
    replace: '',
    more: [
      {
        file: 'begin_recipients()',
        find:
          '      AND NOT EXISTS (SELECT FROM merchant_balance o WHERE o.merchant_id = b.merchant_id AND ' +
          'o.receivable > 0)\n',
        replace: '',
      },
    ],
    test: 'ledger/batches-begin.test.ts',
    finds: 'no recipient begins of a merchant that is gone or owes, of a cancelled batch, in a halt',
  },
  {
    name: 'a debt is not paid from money that comes in',
    file: 'apply_ledger_entries()',
    find: 'IF owing IS NOT NULL THEN',
    replace: 'IF false THEN',
    test: 'ledger/receivable.test.ts',
    finds: 'a debt is taken at once from all money that comes in, and no franc more',
  },
  {
    name: 'an entry that commits late is missing from the snapshots of later moments',
    file: 'apply_ledger_entries()',
    find: 'IF late IS NOT NULL THEN',
    replace: 'IF false THEN',
    test: 'ledger/past-balances.test.ts',
    finds: 'an entry that commits after a snapshot of a later moment is part of it',
  },
  {
    name: 'each reversal of one call takes the whole balance',
    file: 'reverse_many()',
    find: 'b.available - coalesce(sum(a.amount)',
    replace: 'b.available - 0 * coalesce(sum(a.amount)',
    test: 'ledger/reverse.test.ts',
    finds: 'several reversals of one merchant in a call share its balance, the oldest first',
  },
  {
    name: 'a payout is cancelled without its lock',
    file: 'cancel_payout()',
    find: 'WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;',
    replace: 'WHERE p.id = $2 AND p.merchant_id = $1;',
    test: 'ledger/payouts.test.ts',
    finds: 'cancelled or begun, never both, where both come at once',
  },
  {
    name: 'the day of a limited key has no end',
    file: 'take_daily_limit()',
    find: 'WHERE s.amount + excluded.amount <= s.maximum',
    replace: 'WHERE excluded.amount <= s.maximum',
    test: 'spec/access/key-limits.test.ts',
    finds: '20 deposits of 10,000 at once under 50,000 a day: five pass, over all APIs and processes',
  },
  {
    name: 'a link’s place is counted without FOR UPDATE',
    file: 'collect_by_link()',
    find: 'WHERE l.id = link FOR UPDATE OF l;',
    replace: 'WHERE l.id = link;',
    test: 'spec/collections/payment-link-races.test.ts',
    finds: '60 payers at once of a link for one payment: one is prompted, the others read why not',
  },
  {
    name: 'a late payment is no use of its link',
    file: 'record_link_use()',
    find: "(NEW.status = 'success')::int",
    replace: "(NEW.status = 'success' AND OLD.status = 'pending')::int",
    test: 'ledger/links.test.ts',
    finds: 'late money counts, also beyond the limit; an outcome that comes twice counts once',
  },
  {
    name: 'an idempotency claim that another process holds is taken',
    file: 'claim_idempotency_key()',
    find: ' AND (kept.locked_until > clock_timestamp()) IS NOT TRUE THEN',
    replace: ' THEN',
    test: 'idempotency/idempotency-claim.test.ts',
    finds: 'of many callers that resume a request whose process died, exactly one does',
  },
  {
    name: 'a payment passes a whitelist that was just changed',
    file: 'account_of_caller()',
    find: '    AND whitelist_allows(m.ip_whitelist, address)\n',
    replace: '',
    test: 'spec/access/whitelist-money.test.ts',
    finds: 'from an address that is no longer on the whitelist',
  },
  {
    name: 'a deposit is made with an old version of a key',
    file: 'account_of_caller()',
    find: ' AND k.version = credential_version\n    AND k.revoked_at IS NULL',
    replace: ' AND k.revoked_at IS NULL',
    test: 'ledger/deposits.test.ts',
    finds: 'that may not be made writes nothing',
  },
  {
    name: 'a payout is made without cover',
    file: 'judge_payouts()',
    find: '      WHEN item.amount <= remaining THEN',
    replace: '      WHEN true THEN',
    test: 'ledger/payouts.test.ts',
    finds: 'that may not be made writes nothing',
  },
  {
    name: 'the idempotency claim without its lock',
    file: 'claim_idempotency_key()',
    find:
      '    ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE\n' +
      '    SET digest = excluded.digest, operation_id = excluded.operation_id, claim = k.claim + 1, ' +
      'locked_until = ' +
      'excluded.locked_until,\n' +
      '      answer = NULL, created_at = excluded.created_at\n' +
      '    WHERE k.created_at <=',
    replace:
      '    ON CONFLICT DO NOTHING RETURNING k.* INTO kept;\n' +
      '    IF NOT FOUND THEN UPDATE idempotency_key AS k\n' +
      '    SET digest = given_digest, operation_id = new_operation_id, claim = k.claim + 1, locked_until ' +
      '= lease,\n' +
      '      answer = NULL, created_at = service_now()\n' +
      '    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key AND ' +
      'k.created_at <=',
    more: [
      {
        find: "    RETURNING k.* INTO kept;\n    IF FOUND THEN\n      RETURN QUERY SELECT 'begun'",
        replace: "    RETURNING k.* INTO kept; END IF;\n    IF FOUND THEN\n      RETURN QUERY SELECT 'begun'",
      },
      {
        find: ' AND k.key = given_key FOR UPDATE;',
        replace: ' AND k.key = given_key;',
      },
    ],
    test: 'idempotency/idempotency-claim.test.ts',
    finds: 'of many callers that resume a request whose process died, exactly one does',
  },
  {
    name: 'a refund that waits for approval is not counted',
    file: 'judge_deposits()',
    find: "r.status IN ('pending', 'processing')",
    replace: "r.status = 'processing'",
    test: 'spec/approvals/deposit-approvals.test.ts',
    finds: '10 parallel refunds of 60 % that would wait: one does, the others find too little left',
  },
  {
    name: 'one address takes every place of a link',
    file: 'collect_by_link()',
    find: 'greatest(3, used.usage_limit / 10)',
    replace: 'used.usage_limit',
    test: 'pages/payment-link-slots.test.ts',
    finds: 'one address with 40 phones takes 4 of 40 slots, and 40 others pay',
  },
]
