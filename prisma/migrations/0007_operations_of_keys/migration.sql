-- A key belongs to a mutation, by each API that runs it: `POST /deposit` and `mutation deposit` are one,
-- `deposit`. If a merchant used one key by both APIs, the first request keeps it. The answers were encrypted
-- for the old names, so they go: a repetition resumes its operation, and finds what that made.
WITH renamed AS (
  SELECT k.merchant_id, k.operation, k.key, m.mutation, row_number() OVER (
    PARTITION BY k.merchant_id, k.key, m.mutation ORDER BY k.created_at, k.operation) AS nth
  FROM idempotency_key k
  LEFT JOIN (VALUES
    ('POST /pay', 'collectPayment'),
    ('POST /deposit', 'deposit'),
    ('POST /payouts', 'createPayout'),
    ('POST /bulk/batches', 'createBatch'),
    ('POST /bulk/batches/import', 'createBatch'),
    ('POST /bulk/batches/{id}/recipients', 'addRecipients'),
    ('POST /bulk/batches/{id}/process', 'processBatch'),
    ('POST /bulk/batches/{id}/cancel', 'cancelBatch'),
    ('POST /payment-links', 'createPaymentLink'),
    ('PUT /payment-links/{id}', 'updatePaymentLink'),
    ('POST /beneficiaries', 'createBeneficiary'),
    ('PUT /beneficiaries/{id}', 'updateBeneficiary'),
    ('POST /webhooks', 'registerWebhook'),
    ('PUT /webhooks/{id}', 'updateWebhook'),
    ('DELETE /webhooks/{id}', 'removeWebhook'),
    ('POST /webhooks/{id}/test', 'sendTestEvent'),
    ('POST /team/invite', 'inviteMember'),
    ('PUT /team/{id}/role', 'changeMemberRole'),
    ('DELETE /team/{id}', 'removeMember'),
    ('PUT /settings', 'updateSettings')
  ) AS o (operation, mutation) ON o.operation = k.operation
  CROSS JOIN LATERAL (SELECT coalesce(o.mutation, substring(k.operation FROM '^mutation (.*)$'),
    k.operation) AS mutation) m
), dropped AS (
  DELETE FROM idempotency_key k USING renamed r
  WHERE (k.merchant_id, k.operation, k.key) = (r.merchant_id, r.operation, r.key) AND r.nth > 1
)
UPDATE idempotency_key k SET operation = r.mutation, answer = NULL, locked_until = NULL
FROM renamed r
WHERE (k.merchant_id, k.operation, k.key) = (r.merchant_id, r.operation, r.key) AND r.nth = 1
  AND r.mutation <> r.operation;
