-- The tables: what exists, what must hold of each row, how rows are found, and who may read and write them.
-- Functions and triggers stand in files of their own, beside the code that calls them (src/**/*.sql).

GRANT USAGE ON SCHEMA public TO payments_service, payments_merchant;

GRANT SELECT ON _prisma_migrations TO payments_service;
-- The service works on the job engine's tables itself.
GRANT USAGE ON SCHEMA graphile_worker TO payments_service;
GRANT SELECT ON graphile_worker.migrations TO payments_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON graphile_worker._private_jobs, graphile_worker._private_job_queues,
  graphile_worker._private_tasks, graphile_worker._private_known_crontabs TO payments_service;
CREATE POLICY service ON graphile_worker._private_jobs TO payments_service USING (true) WITH CHECK (true);
CREATE POLICY service ON graphile_worker._private_job_queues TO payments_service USING (true)
  WITH CHECK (true);
CREATE POLICY service ON graphile_worker._private_tasks TO payments_service USING (true) WITH CHECK (true);
CREATE POLICY service ON graphile_worker._private_known_crontabs TO payments_service USING (true)
  WITH CHECK (true);

CREATE TYPE merchant_status AS ENUM ('active', 'inactive');
CREATE TYPE provider AS ENUM ('OperatorA', 'OperatorB', 'OperatorC', 'OperatorD');
CREATE TYPE transaction_type AS ENUM ('pay', 'deposit', 'balance_check');
CREATE TYPE transaction_status AS ENUM ('pending', 'processing', 'success', 'failed', 'cancelled', 'reversed',
  'expired');
CREATE TYPE operator_request_kind AS ENUM ('collect', 'disburse');
CREATE TYPE operator_request_state AS ENUM ('sending', 'unsent', 'accepted', 'doubt', 'settled', 'refused',
  'closed');
CREATE TYPE ledger_account AS ENUM ('available', 'reserved', 'clearing_operator_a', 'clearing_operator_b',
  'clearing_operator_c', 'clearing_operator_d', 'fees', 'suspense', 'funding', 'unallocated');
CREATE TYPE ledger_step AS ENUM ('fund', 'credit', 'reserve', 'post', 'void', 'reverse', 'shortfall',
  'release', 'recover', 'excess', 'excess_credit', 'excess_return');
CREATE TYPE payout_status AS ENUM ('pending', 'processing', 'completed', 'failed', 'cancelled');
CREATE TYPE approval_status AS ENUM ('not_required', 'pending', 'approved', 'rejected', 'expired');
CREATE TYPE payout_method AS ENUM ('OperatorA', 'OperatorB', 'OperatorC', 'OperatorD', 'BankTransfer');
CREATE TYPE beneficiary_category AS ENUM ('supplier', 'employee', 'partner', 'customer');
CREATE TYPE webhook_delivery_status AS ENUM ('pending', 'delivered', 'dead');
CREATE TYPE locale AS ENUM ('fr', 'en');
CREATE TYPE member_role AS ENUM ('owner', 'admin', 'finance', 'viewer');
CREATE TYPE member_status AS ENUM ('invited', 'active', 'removed');
-- A batch ends when its last recipient has ended, and its status follows from how they ended.
CREATE TYPE batch_status AS ENUM ('draft', 'pending_approval', 'processing', 'completed',
  'partially_completed', 'failed', 'cancelled');
CREATE TYPE recipient_status AS ENUM ('pending', 'processing', 'success', 'failed', 'cancelled');
CREATE TYPE settlement_exception_state AS ENUM ('open', 'credited', 'returned');
-- The facts that the approval functions read of a payout, batch, deposit or change of settings.
CREATE TYPE approvable AS (merchant_id integer, payout_id bigint, batch_id integer, waits boolean,
  approval approval_status, status text, digest bytea, expires_at timestamptz, required integer, makers
  integer[], settings_change_id integer, transaction_id bigint);
-- The part of an audit entry that names the actor, the operation and the origin of the request.
CREATE TYPE audit_recording AS (merchant_id integer, actor text, address text, request_id uuid, channel text,
  operation text);
-- A key, and a token of it with a lower limit: the amount that each moves in a day is counted.
CREATE TYPE daily_limit AS (api_key_id integer, token_id uuid, max_per_day bigint);
-- An event of `append_events`, before it has a position.
CREATE TYPE new_event AS (merchant_id integer, type text, data jsonb);

CREATE TABLE "merchant" (
  "id" serial,
  "name" text NOT NULL,
  "status" merchant_status NOT NULL DEFAULT 'active',
  "ip_whitelist" text[] DEFAULT ARRAY[]::text[],
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "deactivated_at" timestamptz(3),
  "approval_threshold" bigint NOT NULL DEFAULT 0,
  "payouts_require_approval" boolean NOT NULL DEFAULT false,
  "locale" locale NOT NULL DEFAULT 'fr',
  "notification_email" text,
  "approvals_required" smallint NOT NULL DEFAULT 1,
  "approvals_cover_deposits" boolean NOT NULL DEFAULT false,
  CONSTRAINT "merchant_pkey" PRIMARY KEY (id),
  CONSTRAINT "merchant_approval_threshold" CHECK (approval_threshold >= 0),
  CONSTRAINT "merchant_approvals_required" CHECK (approvals_required >= 1 AND approvals_required <= 3),
  CONSTRAINT "merchant_ip_whitelist" CHECK (cardinality(ip_whitelist) <= 50),
  CONSTRAINT "merchant_name_length" CHECK (char_length(name) >= 1 AND char_length(name) <= 200),
  CONSTRAINT "merchant_notification_email" CHECK (char_length(notification_email) >= 3 AND
    char_length(notification_email) <= 254)
);
-- The jobs that look for due work leave out merchants that are not active.
CREATE INDEX merchant_inactive ON "merchant" (id) WHERE (status <> 'active'::merchant_status);
GRANT SELECT ON "merchant" TO payments_merchant;
GRANT INSERT, SELECT ON "merchant" TO payments_service;
GRANT UPDATE ("name", "status", "ip_whitelist", "deactivated_at", "locale", "notification_email") ON
  "merchant" TO payments_service;
GRANT USAGE ON SEQUENCE "merchant_id_seq" TO payments_service;

CREATE TABLE "api_key" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "name" text NOT NULL,
  "key" text NOT NULL,
  "secret_hash" bytea NOT NULL,
  "pepper_id" smallint NOT NULL,
  "scopes" text[],
  "version" integer NOT NULL DEFAULT 1,
  "revoked_at" timestamptz(3),
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "expires_at" timestamptz(3),
  "last_used_at" timestamptz(3),
  "last_used_from" text,
  "addresses" text[] DEFAULT ARRAY[]::text[],
  "max_per_day" bigint,
  "max_per_payment" bigint,
  "payment_methods" provider[] DEFAULT ARRAY[]::provider[],
  "issued_to_id" integer,
  "suspended_at" timestamptz(3),
  CONSTRAINT "api_key_pkey" PRIMARY KEY (id),
  -- A limit of 0 would refuse every payment: revoke the key instead.
  CONSTRAINT "api_key_limits" CHECK (max_per_payment >= 1 AND max_per_day >= 1)
);
CREATE UNIQUE INDEX api_key_key_key ON "api_key" (key);
CREATE INDEX api_key_merchant_id_idx ON "api_key" (merchant_id);
CREATE INDEX api_key_issued_to_id_idx ON "api_key" (issued_to_id);
GRANT SELECT ON "api_key" TO payments_service;
GRANT SELECT ("id", "merchant_id", "name", "key", "scopes", "version", "revoked_at", "created_at",
  "expires_at", "last_used_at", "last_used_from", "addresses", "max_per_day", "max_per_payment",
  "payment_methods", "issued_to_id", "suspended_at") ON "api_key" TO payments_merchant;

-- A session has no secret, because a password proved its member, but it has an end. It draws its id from the
-- sequence of the keys: a token names its credential by the id alone.
CREATE TABLE "session" (
  "id" integer NOT NULL DEFAULT nextval('api_key_id_seq'::regclass),
  "merchant_id" integer NOT NULL,
  "member_id" integer NOT NULL,
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "expires_at" timestamptz(3) NOT NULL,
  "last_used_at" timestamptz(3),
  "last_used_from" text,
  "revoked_at" timestamptz(3),
  CONSTRAINT "session_pkey" PRIMARY KEY (id)
);
CREATE INDEX session_member_id_idx ON "session" (member_id);
GRANT SELECT ON "session" TO payments_merchant;
GRANT SELECT ON "session" TO payments_service;

-- Every credential that a token can name: keys and sessions. The version of a session is always 1.
CREATE VIEW "credential" WITH (security_invoker = true) AS
  SELECT id, merchant_id, version, NULL::integer AS member_id, issued_to_id, created_at, expires_at,
    last_used_at, revoked_at
  FROM api_key
  UNION ALL
  SELECT id, merchant_id, 1, member_id, NULL, created_at, expires_at, last_used_at, revoked_at FROM session;
GRANT SELECT ON "credential" TO payments_service;

CREATE TABLE "signing_key" (
  "kid" text NOT NULL,
  "public_key" jsonb NOT NULL,
  "encrypted_private" bytea NOT NULL,
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "retired_at" timestamptz(3),
  CONSTRAINT "signing_key_pkey" PRIMARY KEY (kid)
);
GRANT SELECT ON "signing_key" TO payments_service;

CREATE UNLOGGED TABLE "rate_limit" (
  "name" text NOT NULL,
  "hits" timestamptz(3)[],
  CONSTRAINT "rate_limit_pkey" PRIMARY KEY (name)
);
GRANT SELECT ON "rate_limit" TO payments_service;

CREATE TABLE "sandbox_clock" (
  "singleton" boolean NOT NULL DEFAULT true,
  "offset_ms" bigint NOT NULL,
  "moves" text[] DEFAULT ARRAY[]::text[],
  CONSTRAINT "sandbox_clock_pkey" PRIMARY KEY (singleton),
  CONSTRAINT "sandbox_clock_single" CHECK (singleton)
);
GRANT SELECT ON "sandbox_clock" TO payments_merchant;
GRANT INSERT, SELECT, UPDATE ON "sandbox_clock" TO payments_service;

CREATE TABLE "lifecycle_move" (
  "lifecycle" text NOT NULL,
  "from_status" text NOT NULL,
  "to_status" text NOT NULL,
  CONSTRAINT "lifecycle_move_pkey" PRIMARY KEY (lifecycle, from_status, to_status)
);
GRANT SELECT ON "lifecycle_move" TO payments_service;
INSERT INTO "lifecycle_move" ("lifecycle", "from_status", "to_status") VALUES
  ('approval', 'pending', 'approved'),
  ('approval', 'pending', 'expired'),
  ('approval', 'pending', 'rejected'),
  ('batch', 'draft', 'cancelled'),
  ('batch', 'draft', 'pending_approval'),
  ('batch', 'draft', 'processing'),
  ('batch', 'pending_approval', 'cancelled'),
  ('batch', 'pending_approval', 'processing'),
  ('batch', 'processing', 'cancelled'),
  ('batch', 'processing', 'completed'),
  ('batch', 'processing', 'failed'),
  ('batch', 'processing', 'partially_completed'),
  ('payout', 'pending', 'cancelled'),
  ('payout', 'pending', 'failed'),
  ('payout', 'pending', 'processing'),
  ('payout', 'processing', 'completed'),
  ('payout', 'processing', 'failed'),
  ('recipient', 'pending', 'cancelled'),
  ('recipient', 'pending', 'processing'),
  ('recipient', 'processing', 'failed'),
  ('recipient', 'processing', 'success'),
  ('transaction', 'cancelled', 'success'),
  ('transaction', 'expired', 'success'),
  ('transaction', 'failed', 'success'),
  ('transaction', 'pending', 'cancelled'),
  ('transaction', 'pending', 'expired'),
  ('transaction', 'pending', 'failed'),
  ('transaction', 'pending', 'processing'),
  ('transaction', 'pending', 'success'),
  ('transaction', 'processing', 'failed'),
  ('transaction', 'processing', 'success'),
  ('transaction', 'success', 'reversed'),
  ('webhook_delivery', 'dead', 'delivered'),
  ('webhook_delivery', 'dead', 'pending'),
  ('webhook_delivery', 'delivered', 'pending'),
  ('webhook_delivery', 'pending', 'dead'),
  ('webhook_delivery', 'pending', 'delivered');

CREATE TABLE "transaction" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "transaction_type" transaction_type NOT NULL,
  "payment_method" provider NOT NULL,
  "customer_phone" text NOT NULL,
  "amount" bigint NOT NULL,
  "status" transaction_status NOT NULL,
  "reference" text NOT NULL,
  "request_data" jsonb NOT NULL,
  "payment_url" text,
  "operator_reference" text,
  "failure_reason" text,
  "failure_message" text,
  "settled_amount" bigint,
  "evidence_source" text,
  "late" boolean NOT NULL DEFAULT false,
  "settled_at" timestamptz(3),
  "expires_at" timestamptz(3),
  "created_at" timestamptz(3) NOT NULL,
  "refund_of_id" bigint,
  "payment_link_id" integer,
  "correlation_id" uuid NOT NULL DEFAULT gen_random_uuid(),
  CONSTRAINT "transaction_pkey" PRIMARY KEY (id),
  CONSTRAINT "transaction_amount" CHECK ( CASE transaction_type WHEN 'pay'::transaction_type THEN amount >=
    100 WHEN 'deposit'::transaction_type THEN amount >= CASE WHEN refund_of_id IS NULL THEN 1000 ELSE 1 END
    ELSE amount = 0 END),
  -- A payment is late only where its money came after it had ended unpaid.
  CONSTRAINT "transaction_late" CHECK (NOT late OR (status = ANY (ARRAY['success'::transaction_status,
    'reversed'::transaction_status]))),
  CONSTRAINT "transaction_phone" CHECK (customer_phone ~ '^\+223[2-9][0-9]{7}$'::text OR transaction_type =
    'balance_check'::transaction_type AND customer_phone = ''::text),
  CONSTRAINT "transaction_reference" CHECK (char_length(reference) >= 1 AND char_length(reference) <= 100),
  CONSTRAINT "transaction_refund_of_id" CHECK (refund_of_id IS NULL OR transaction_type =
    'deposit'::transaction_type),
  CONSTRAINT "transaction_settled_amount" CHECK (settled_amount > 0 AND (settled_amount IS NOT NULL) = (status
    = ANY (ARRAY['success'::transaction_status, 'reversed'::transaction_status])) OR settled_amount IS NULL
    AND ((status <> ALL (ARRAY['success'::transaction_status, 'reversed'::transaction_status])) OR
    transaction_type = 'balance_check'::transaction_type)),
  CONSTRAINT "transaction_settled_amount_max" CHECK (settled_amount <= amount)
);
CREATE UNIQUE INDEX transaction_reference_merchant_id_key ON "transaction" (reference, merchant_id);
CREATE INDEX transaction_merchant_id_customer_phone_id_idx ON "transaction" (merchant_id, customer_phone, id);
CREATE INDEX transaction_merchant_id_created_at_idx ON "transaction" (merchant_id, created_at);
CREATE UNIQUE INDEX transaction_merchant_id_id_key ON "transaction" (merchant_id, id);
-- Finds the refunds of a collection.
CREATE INDEX transaction_refund ON "transaction" (refund_of_id) WHERE (refund_of_id IS NOT NULL);
CREATE INDEX transaction_payment_link ON "transaction" (payment_link_id, id) WHERE (payment_link_id IS NOT
  NULL);
-- Counts how often the links of all merchants asked a telephone number that did not pay, so that it is not
-- asked too often.
CREATE INDEX transaction_requested_by_link ON "transaction" (customer_phone, created_at)
  WHERE (payment_link_id IS
  NOT NULL);
CREATE INDEX transaction_open_by_link ON "transaction" (payment_link_id, created_at) WHERE ((payment_link_id
  IS NOT NULL) AND (status = ANY (ARRAY['pending'::transaction_status, 'processing'::transaction_status])));
GRANT SELECT ON "transaction" TO payments_merchant;
GRANT SELECT ON "transaction" TO payments_service;
GRANT UPDATE ("payment_url") ON "transaction" TO payments_service;
GRANT USAGE ON SEQUENCE "transaction_id_seq" TO payments_service;

CREATE TABLE "operator_request" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "transaction_id" bigint,
  "provider" provider NOT NULL,
  "kind" operator_request_kind NOT NULL,
  "correlation_id" uuid NOT NULL,
  "amount" bigint NOT NULL,
  "phone" text NOT NULL,
  "state" operator_request_state NOT NULL DEFAULT 'sending',
  "attempt" smallint NOT NULL DEFAULT 1,
  "handle" jsonb NOT NULL DEFAULT '{}',
  "evidence" jsonb,
  "fence_until" timestamptz(3) NOT NULL,
  "query_after" timestamptz(3),
  "next_check_at" timestamptz(3),
  "check_count" integer NOT NULL DEFAULT 0,
  "accepted_at" timestamptz(3),
  "created_at" timestamptz(3) NOT NULL,
  "payout_id" bigint,
  "recipient_id" bigint,
  CONSTRAINT "operator_request_pkey" PRIMARY KEY (id),
  CONSTRAINT "operator_request_amount" CHECK (amount > 0),
  CONSTRAINT "operator_request_attempt" CHECK (attempt >= 1),
  CONSTRAINT "operator_request_subject" CHECK (num_nonnulls(transaction_id, payout_id, recipient_id) = 1)
  -- A request grows to three times its first size in about three updates, which all find room in its page.
) WITH (fillfactor = 30);
CREATE UNIQUE INDEX operator_request_correlation_id_key ON "operator_request" (correlation_id);
-- A payment out has no transaction, and a transaction no payout: an index holds no empty entries.
CREATE UNIQUE INDEX operator_request_payout_id_key ON "operator_request" (payout_id) WHERE (payout_id IS NOT
  NULL);
CREATE INDEX operator_request_transaction_id_idx ON "operator_request" (transaction_id) WHERE (transaction_id
  IS NOT NULL);
CREATE UNIQUE INDEX operator_request_recipient ON "operator_request" (recipient_id) WHERE (recipient_id IS NOT
  NULL);
GRANT SELECT, UPDATE ON "operator_request" TO payments_service;
GRANT SELECT ("merchant_id", "correlation_id", "state", "attempt", "check_count", "accepted_at", "created_at",
  "recipient_id") ON "operator_request" TO payments_merchant;
GRANT USAGE ON SEQUENCE "operator_request_id_seq" TO payments_service;

-- The next two tables hold the columns of a request that change often and need an index: the time at which
-- the operator is asked about it, and its call under way. So an update of `operator_request` changes no
-- index (it is a HOT update). Only functions that act as the owner read and write both tables.

-- A due row: when to look at a request that the service asks about again (docs/design/requests.md#due-rows).
-- No foreign key: its check would lock the row of each new request once more, and no request is deleted.
CREATE TABLE "request_due" (
  "request_id" bigint NOT NULL,
  "merchant_id" integer NOT NULL,
  "provider" provider NOT NULL,
  "at" timestamptz(3) NOT NULL,
  CONSTRAINT "request_due_pkey" PRIMARY KEY (request_id)
);
CREATE INDEX request_due_provider_at_idx ON "request_due" (provider, at);

-- The requests for recipients of batches that are being sent: they take capacity of their batch and operator.
CREATE TABLE "recipient_call" (
  "request_id" bigint NOT NULL,
  "merchant_id" integer NOT NULL,
  "recipient_id" bigint NOT NULL,
  "provider" provider NOT NULL,
  "fence_until" timestamptz(3) NOT NULL,
  CONSTRAINT "recipient_call_pkey" PRIMARY KEY (request_id)
);
CREATE INDEX recipient_call_fence_until_idx ON "recipient_call" (fence_until);

CREATE TABLE "operator_exchange" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "request_id" bigint NOT NULL,
  "operation" text NOT NULL,
  "method" text NOT NULL,
  "path" text NOT NULL,
  "status" smallint,
  "request_body" text NOT NULL,
  "response_body" text NOT NULL,
  "error" text,
  "duration_ms" integer NOT NULL,
  "at" timestamptz(3) NOT NULL,
  CONSTRAINT "operator_exchange_pkey" PRIMARY KEY (id)
);
CREATE INDEX operator_exchange_request_id_idx ON "operator_exchange" (request_id);
GRANT SELECT ON "operator_exchange" TO payments_service;

CREATE TABLE "operator_callback" (
  "id" bigserial,
  "merchant_id" integer,
  "request_id" bigint,
  "provider" provider NOT NULL,
  "dedupe_key" text NOT NULL,
  "body" text NOT NULL,
  "received_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "operator_callback_pkey" PRIMARY KEY (id)
);
CREATE UNIQUE INDEX operator_callback_provider_dedupe_key_key ON "operator_callback" (provider, dedupe_key);
GRANT SELECT ON "operator_callback" TO payments_service;

CREATE TABLE "ledger_entry" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "origin" text NOT NULL,
  "step" ledger_step NOT NULL,
  "debit" ledger_account NOT NULL,
  "credit" ledger_account NOT NULL,
  "amount" bigint NOT NULL,
  "created_at" timestamptz(3) NOT NULL,
  CONSTRAINT "ledger_entry_pkey" PRIMARY KEY (id),
  CONSTRAINT "ledger_entry_amount" CHECK (amount > 0),
  -- No amount is larger than a JSON number holds exactly, 2^53 - 1: no balance can overflow, and every
  -- balance can be answered.
  CONSTRAINT "ledger_entry_amount_max" CHECK (amount <= '9007199254740991'::bigint),
  CONSTRAINT "ledger_entry_sides" CHECK (debit <> credit)
);
CREATE UNIQUE INDEX ledger_entry_origin_step_key ON "ledger_entry" (origin, step);
-- A reservation ends once: it is paid out or given back, never both.
CREATE UNIQUE INDEX ledger_entry_reservation_end ON "ledger_entry" (origin) WHERE (step = ANY
  (ARRAY['post'::ledger_step, 'void'::ledger_step]));
CREATE INDEX ledger_entry_merchant_id_created_at_id_idx ON "ledger_entry" (merchant_id, created_at, id);
GRANT SELECT ON "ledger_entry" TO payments_merchant;
GRANT SELECT ON "ledger_entry" TO payments_service;
GRANT USAGE ON SEQUENCE "ledger_entry_id_seq" TO payments_service;

CREATE TABLE "merchant_balance" (
  "merchant_id" integer NOT NULL,
  "available" bigint NOT NULL DEFAULT 0,
  "reserved" bigint NOT NULL DEFAULT 0,
  "receivable" bigint NOT NULL DEFAULT 0,
  "entries_since" integer NOT NULL DEFAULT 0,
  "snapshot_at" timestamptz(3),
  CONSTRAINT "merchant_balance_pkey" PRIMARY KEY (merchant_id),
  CONSTRAINT "merchant_balance_available" CHECK (available >= 0),
  CONSTRAINT "merchant_balance_max" CHECK (available <= ('9007199254740991'::bigint - reserved) AND receivable
    <= '9007199254740991'::bigint),
  CONSTRAINT "merchant_balance_receivable" CHECK (receivable >= 0),
  CONSTRAINT "merchant_balance_reserved" CHECK (reserved >= 0)
);
-- Finds the merchants that owe money, because their payouts wait until the debt is paid. Cancelling such a
-- payout frees its money and pays the debt.
CREATE INDEX merchant_owing ON "merchant_balance" (merchant_id) WHERE (receivable > 0);
GRANT SELECT ON "merchant_balance" TO payments_merchant;
GRANT SELECT ON "merchant_balance" TO payments_service;

-- The balance of a merchant at a past moment, once per 256 of its entries, so that `statement` and
-- `balance(at)` read a bounded number of entries (see docs/design/ledger.md#past-balances).
CREATE TABLE "balance_snapshot" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "at" timestamptz(3) NOT NULL,
  "available" bigint NOT NULL,
  "reserved" bigint NOT NULL,
  "receivable" bigint NOT NULL,
  "total_in" bigint NOT NULL,
  "total_out" bigint NOT NULL,
  CONSTRAINT "balance_snapshot_pkey" PRIMARY KEY (id),
  CONSTRAINT "balance_snapshot_totals" CHECK (available + reserved = total_in - total_out)
);
CREATE UNIQUE INDEX balance_snapshot_merchant_id_at_key ON "balance_snapshot" (merchant_id, at);
GRANT SELECT ON "balance_snapshot" TO payments_merchant;
GRANT SELECT ON "balance_snapshot" TO payments_service;

CREATE TABLE "event" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "position" bigint NOT NULL,
  "type" text NOT NULL,
  "data" jsonb NOT NULL,
  "created_at" timestamptz(3) NOT NULL,
  CONSTRAINT "event_pkey" PRIMARY KEY (id),
  CONSTRAINT "event_position" CHECK ("position" > 0)
);
CREATE UNIQUE INDEX event_merchant_id_position_key ON "event" (merchant_id, "position");
GRANT SELECT ON "event" TO payments_merchant;
GRANT SELECT ON "event" TO payments_service;
GRANT USAGE ON SEQUENCE "event_id_seq" TO payments_service;

CREATE TABLE "event_log_position" (
  "merchant_id" integer NOT NULL,
  "position" bigint NOT NULL,
  CONSTRAINT "event_log_position_pkey" PRIMARY KEY (merchant_id)
);
GRANT SELECT ON "event_log_position" TO payments_merchant;
GRANT SELECT ON "event_log_position" TO payments_service;

CREATE TABLE "idempotency_key" (
  "merchant_id" integer NOT NULL,
  "operation" text NOT NULL,
  "key" text NOT NULL,
  "digest" bytea NOT NULL,
  "operation_id" bytea NOT NULL,
  "claim" integer NOT NULL DEFAULT 1,
  "locked_until" timestamptz(3),
  "answer" bytea,
  "created_at" timestamptz(3) NOT NULL,
  CONSTRAINT "idempotency_key_pkey" PRIMARY KEY (merchant_id, operation, key),
  CONSTRAINT "idempotency_key_sizes" CHECK (length(key) >= 1 AND length(key) <= 255 AND length(digest) = 32
    AND length(operation_id) = 16)
);
CREATE INDEX idempotency_key_created_at_idx ON "idempotency_key" (created_at);

CREATE TABLE "audit_point" (
  "singleton" boolean NOT NULL DEFAULT true,
  "ledger_entry_id" bigint NOT NULL DEFAULT 0,
  "event_id" bigint NOT NULL DEFAULT 0,
  "next_ledger_entry_id" bigint NOT NULL,
  "next_event_id" bigint NOT NULL,
  "whole_proven_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "next_writers" text[] DEFAULT ARRAY[]::text[],
  "proven_at" timestamptz(3),
  CONSTRAINT "audit_point_pkey" PRIMARY KEY (singleton),
  CONSTRAINT "audit_point_single" CHECK (singleton)
);
GRANT SELECT ON "audit_point" TO payments_service;

CREATE TABLE "audit_proven" (
  "merchant_id" integer NOT NULL,
  "available" bigint NOT NULL,
  "reserved" bigint NOT NULL,
  "position" bigint NOT NULL,
  "receivable" bigint NOT NULL DEFAULT 0,
  CONSTRAINT "audit_proven_pkey" PRIMARY KEY (merchant_id)
);

CREATE TABLE "payments_out_halt" (
  "id" serial,
  "reason" text NOT NULL,
  "halted_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "lifted_reason" text,
  "lifted_at" timestamptz(3),
  "restored_epoch" integer,
  "lifts_itself" boolean NOT NULL DEFAULT false,
  CONSTRAINT "payments_out_halt_pkey" PRIMARY KEY (id),
  CONSTRAINT "payments_out_halt_lifted" CHECK (num_nulls(lifted_at, lifted_reason) = 2 OR
    char_length(lifted_reason) >= 1 AND char_length(lifted_reason) <= 1000 AND lifted_at IS NOT NULL),
  CONSTRAINT "payments_out_halt_reason" CHECK (char_length(reason) >= 1 AND char_length(reason) <= 1000)
);
CREATE UNIQUE INDEX payments_out_halt_open ON "payments_out_halt" (lifts_itself) WHERE (lifted_at IS NULL);
GRANT SELECT ON "payments_out_halt" TO payments_service;

CREATE TABLE "transaction_count_change" (
  "merchant_id" integer NOT NULL,
  "id" bigserial,
  "bucket" bigint NOT NULL,
  "transaction_type" transaction_type NOT NULL,
  "payment_method" provider NOT NULL,
  "status" transaction_status NOT NULL,
  "n" bigint NOT NULL,
  "hour" timestamptz(3) NOT NULL,
  "amount" bigint NOT NULL DEFAULT 0,
  "settled_amount" bigint NOT NULL DEFAULT 0,
  CONSTRAINT "transaction_count_change_pkey" PRIMARY KEY (merchant_id, id)
);
GRANT SELECT ON "transaction_count_change" TO payments_merchant;
GRANT SELECT ON "transaction_count_change" TO payments_service;

CREATE TABLE "transaction_count" (
  "merchant_id" integer NOT NULL,
  "transaction_type" transaction_type NOT NULL,
  "payment_method" provider NOT NULL,
  "status" transaction_status NOT NULL,
  "n" bigint NOT NULL,
  CONSTRAINT "transaction_count_pkey" PRIMARY KEY (merchant_id, transaction_type, payment_method, status)
);
GRANT SELECT ON "transaction_count" TO payments_merchant;
GRANT SELECT ON "transaction_count" TO payments_service;

-- Counts and sums of the transactions of a merchant by the hour of their creation, so that a list of a
-- period has its exact total without reading its rows. The buckets (1,024 ids each) bound the rows' ids.
CREATE TABLE "transaction_hour" (
  "merchant_id" integer NOT NULL,
  "hour" timestamptz(3) NOT NULL,
  "transaction_type" transaction_type NOT NULL,
  "payment_method" provider NOT NULL,
  "status" transaction_status NOT NULL,
  "n" bigint NOT NULL,
  "amount" bigint NOT NULL,
  "settled_amount" bigint NOT NULL,
  "first_bucket" bigint NOT NULL,
  "last_bucket" bigint NOT NULL,
  CONSTRAINT "transaction_hour_pkey" PRIMARY KEY (merchant_id, hour, transaction_type, payment_method, status)
);
GRANT SELECT ON "transaction_hour" TO payments_merchant;
GRANT SELECT ON "transaction_hour" TO payments_service;

CREATE TABLE "transaction_block" (
  "merchant_id" integer NOT NULL,
  "first_id" bigint NOT NULL,
  "last_id" bigint NOT NULL,
  "n" bigint NOT NULL,
  "n_before" bigint NOT NULL,
  CONSTRAINT "transaction_block_pkey" PRIMARY KEY (merchant_id, first_id)
);
CREATE INDEX transaction_block_merchant_id_n_before_idx ON "transaction_block" (merchant_id, n_before);
GRANT SELECT ON "transaction_block" TO payments_merchant;
GRANT SELECT ON "transaction_block" TO payments_service;

CREATE TABLE "transaction_block_count" (
  "merchant_id" integer NOT NULL,
  "first_id" bigint NOT NULL,
  "transaction_type" transaction_type NOT NULL,
  "payment_method" provider NOT NULL,
  "status" transaction_status NOT NULL,
  "n" bigint NOT NULL,
  CONSTRAINT "transaction_block_count_pkey" PRIMARY KEY (merchant_id, first_id, transaction_type,
    payment_method, status)
);
GRANT SELECT ON "transaction_block_count" TO payments_merchant;
GRANT SELECT ON "transaction_block_count" TO payments_service;

CREATE TABLE "payout" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "payment_method" provider NOT NULL,
  "destination_phone" text NOT NULL,
  "amount" bigint NOT NULL,
  "status" payout_status NOT NULL DEFAULT 'pending',
  "reference" text NOT NULL,
  "scheduled_at" timestamptz(3),
  "send_at" timestamptz(3) NOT NULL,
  "approval" approval_status NOT NULL,
  "approval_digest" bytea,
  "approval_expires_at" timestamptz(3),
  "maker" text NOT NULL,
  "beneficiary_id" integer,
  "beneficiary_name" text,
  "request_data" jsonb NOT NULL,
  "operator_reference" text,
  "failure_reason" text,
  "failure_message" text,
  "settled_amount" bigint,
  "evidence_source" text,
  "settled_at" timestamptz(3),
  "reversed_at" timestamptz(3),
  "created_at" timestamptz(3) NOT NULL,
  "approvals_required" smallint NOT NULL DEFAULT 0,
  "maker_member_id" integer,
  "correlation_id" uuid NOT NULL DEFAULT gen_random_uuid(),
  CONSTRAINT "payout_pkey" PRIMARY KEY (id),
  CONSTRAINT "payout_amount" CHECK (amount >= 1000),
  -- A payment that waits for approval, or was not approved, is never sent.
  CONSTRAINT "payout_approval" CHECK ( CASE approval WHEN 'pending'::approval_status THEN status = ANY
    (ARRAY['pending'::payout_status, 'cancelled'::payout_status]) WHEN 'rejected'::approval_status THEN status
    = 'cancelled'::payout_status WHEN 'expired'::approval_status THEN status = 'cancelled'::payout_status ELSE
    true END),
  CONSTRAINT "payout_approval_digest" CHECK ((approval_digest IS NOT NULL) = (approval <>
    'not_required'::approval_status) AND (approval_digest IS NULL OR length(approval_digest) = 32)),
  CONSTRAINT "payout_approval_expires_at" CHECK ((approval_expires_at IS NOT NULL) = (approval <>
    'not_required'::approval_status)),
  CONSTRAINT "payout_approvals_required" CHECK (approvals_required >= 0 AND approvals_required <= 3 AND
    (approvals_required > 0) = (approval <> 'not_required'::approval_status)),
  CONSTRAINT "payout_destination_phone" CHECK (destination_phone ~ '^\+223[2-9][0-9]{7}$'::text),
  CONSTRAINT "payout_reference" CHECK (char_length(reference) >= 1 AND char_length(reference) <= 100),
  CONSTRAINT "payout_reversed_at" CHECK (reversed_at IS NULL OR status = 'completed'::payout_status),
  CONSTRAINT "payout_send_at" CHECK (scheduled_at IS NULL OR send_at = scheduled_at),
  CONSTRAINT "payout_settled_amount" CHECK ((settled_amount IS NOT NULL) = (status =
    'completed'::payout_status) AND (settled_amount IS NULL OR settled_amount > 0)),
  CONSTRAINT "payout_settled_amount_max" CHECK (settled_amount <= amount)
);
CREATE INDEX payout_merchant_id_id_idx ON "payout" (merchant_id, id);
CREATE UNIQUE INDEX payout_reference_merchant_id_key ON "payout" (reference, merchant_id);
-- Last of its table: between indexes that promise the same the planner takes the newest.
CREATE UNIQUE INDEX payout_id_merchant_id_key ON "payout" (id, merchant_id);
CREATE INDEX payout_due ON "payout" (payment_method, send_at, id) WHERE ((status = 'pending'::payout_status)
  AND (approval = ANY (ARRAY['not_required'::approval_status, 'approved'::approval_status])));
CREATE INDEX payout_awaiting ON "payout" (approval_expires_at) WHERE ((approval = 'pending'::approval_status)
  AND (status = 'pending'::payout_status));
-- Lists the payouts that wait for approval of a merchant, the one that expires first in front.
CREATE INDEX payout_waiting ON "payout" (merchant_id, approval_expires_at, id) WHERE ((approval =
  'pending'::approval_status) AND (status = 'pending'::payout_status));
CREATE UNIQUE INDEX payout_correlation_id_key ON "payout" (correlation_id);
GRANT SELECT ON "payout" TO payments_merchant;
GRANT SELECT ON "payout" TO payments_service;

CREATE TABLE "payout_count" (
  "merchant_id" integer NOT NULL,
  "payment_method" provider NOT NULL,
  "status" payout_status NOT NULL,
  "n" bigint NOT NULL,
  CONSTRAINT "payout_count_pkey" PRIMARY KEY (merchant_id, payment_method, status)
);
GRANT SELECT ON "payout_count" TO payments_merchant;
GRANT SELECT ON "payout_count" TO payments_service;

CREATE TABLE "beneficiary" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "name" text NOT NULL,
  "account" text NOT NULL,
  "payment_method" payout_method NOT NULL,
  "category" beneficiary_category NOT NULL DEFAULT 'customer',
  "is_active" boolean NOT NULL DEFAULT true,
  "made_for" text,
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "updated_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "beneficiary_pkey" PRIMARY KEY (id),
  CONSTRAINT "beneficiary_account" CHECK ( CASE payment_method WHEN 'BankTransfer'::payout_method THEN
    char_length(account) >= 5 AND char_length(account) <= 34 ELSE account ~ '^\+223[2-9][0-9]{7}$'::text END),
  CONSTRAINT "beneficiary_name" CHECK (char_length(name) >= 1 AND char_length(name) <= 200)
);
CREATE INDEX beneficiary_merchant_id_id_idx ON "beneficiary" (merchant_id, id);
CREATE UNIQUE INDEX beneficiary_made_for_merchant_id_key ON "beneficiary" (made_for, merchant_id);
CREATE UNIQUE INDEX beneficiary_id_merchant_id_key ON "beneficiary" (id, merchant_id);
GRANT INSERT, SELECT ON "beneficiary" TO payments_merchant;
GRANT SELECT ON "beneficiary" TO payments_service;
GRANT UPDATE ("name", "account", "payment_method", "category", "is_active", "updated_at") ON "beneficiary" TO
  payments_merchant;
GRANT USAGE ON SEQUENCE "beneficiary_id_seq" TO payments_merchant;

CREATE TABLE "webhook_endpoint" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "slot" smallint,
  "url" text NOT NULL,
  "events" text[],
  "secret_encrypted" bytea NOT NULL,
  "previous_secret_encrypted" bytea,
  "previous_secret_until" timestamptz(3),
  "is_active" boolean NOT NULL DEFAULT true,
  "failure_count" integer NOT NULL DEFAULT 0,
  "failing_since" timestamptz(3),
  "disabled_at" timestamptz(3),
  "last_success_at" timestamptz(3),
  "last_failure_at" timestamptz(3),
  "paused_until" timestamptz(3),
  "due_at" timestamptz(3),
  "removed_at" timestamptz(3),
  "made_for" text,
  "rotated_for" text,
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "updated_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- The position up to which the endpoint has its deliveries (see docs/design/events.md#deliveries).
  "delivered_to" bigint NOT NULL,
  CONSTRAINT "webhook_endpoint_pkey" PRIMARY KEY (id),
  CONSTRAINT "webhook_endpoint_disabled_at" CHECK (disabled_at IS NULL OR NOT is_active),
  -- The service sends nothing to an endpoint that is inactive or removed.
  CONSTRAINT "webhook_endpoint_due_at" CHECK (due_at IS NULL OR is_active AND removed_at IS NULL),
  CONSTRAINT "webhook_endpoint_events" CHECK (cardinality(events) > 0),
  CONSTRAINT "webhook_endpoint_failure_count" CHECK (failure_count >= 0),
  CONSTRAINT "webhook_endpoint_previous_secret" CHECK ((previous_secret_encrypted IS NULL) =
    (previous_secret_until IS NULL)),
  CONSTRAINT "webhook_endpoint_slot" CHECK ((slot IS NULL) = (removed_at IS NOT NULL) AND (slot IS NULL OR
    slot >= 1 AND slot <= 5)),
  CONSTRAINT "webhook_endpoint_url" CHECK (char_length(url) >= 1 AND char_length(url) <= 2048)
);
CREATE INDEX webhook_endpoint_merchant_id_id_idx ON "webhook_endpoint" (merchant_id, id);
CREATE UNIQUE INDEX webhook_endpoint_made_for_merchant_id_key ON "webhook_endpoint" (made_for, merchant_id);
CREATE UNIQUE INDEX webhook_endpoint_merchant_id_slot_key ON "webhook_endpoint" (merchant_id, slot);
CREATE UNIQUE INDEX webhook_endpoint_id_merchant_id_key ON "webhook_endpoint" (id, merchant_id);
-- Finds the endpoints with due deliveries.
CREATE INDEX webhook_endpoint_due ON "webhook_endpoint" (due_at) WHERE (due_at IS NOT NULL);
GRANT SELECT ON "webhook_endpoint" TO payments_service;
GRANT SELECT ("id", "merchant_id", "slot", "url", "events", "previous_secret_until", "is_active",
  "failure_count", "failing_since", "disabled_at", "last_success_at", "last_failure_at", "paused_until",
  "due_at", "removed_at", "made_for", "rotated_for", "created_at", "updated_at", "delivered_to") ON
  "webhook_endpoint" TO payments_merchant;
GRANT USAGE ON SEQUENCE "webhook_endpoint_id_seq" TO payments_service;

CREATE TABLE "webhook_delivery" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "endpoint_id" integer NOT NULL,
  "position" bigint,
  "type" text NOT NULL,
  "status" webhook_delivery_status NOT NULL DEFAULT 'pending',
  "attempt_count" integer NOT NULL DEFAULT 0,
  "attempts_total" integer NOT NULL DEFAULT 0,
  "next_attempt_at" timestamptz(3),
  "ended_at" timestamptz(3),
  "created_at" timestamptz(3) NOT NULL,
  CONSTRAINT "webhook_delivery_attempts" CHECK (attempt_count >= 0 AND attempt_count <= attempts_total),
  CONSTRAINT "webhook_delivery_ended_at" CHECK ((ended_at IS NULL) = (status =
    'pending'::webhook_delivery_status)),
  CONSTRAINT "webhook_delivery_next_attempt_at" CHECK (next_attempt_at IS NULL OR status =
    'pending'::webhook_delivery_status),
  -- A test delivery belongs to no event, and is recorded once it was sent.
  CONSTRAINT "webhook_delivery_position" CHECK (("position" IS NULL) = (type = 'test'::text)),
  CONSTRAINT "webhook_delivery_test" CHECK ("position" IS NOT NULL OR status <>
    'pending'::webhook_delivery_status)
);
CREATE INDEX webhook_delivery_endpoint_id_id_idx ON "webhook_delivery" (endpoint_id, id);
CREATE UNIQUE INDEX webhook_delivery_endpoint_id_position_key ON "webhook_delivery" (endpoint_id, "position");
CREATE INDEX webhook_delivery_fresh ON "webhook_delivery" (endpoint_id, "position") WHERE ((status =
  'pending'::webhook_delivery_status) AND (next_attempt_at IS NULL));
CREATE INDEX webhook_delivery_waiting ON "webhook_delivery" (endpoint_id, next_attempt_at) WHERE ((status =
  'pending'::webhook_delivery_status) AND (next_attempt_at IS NOT NULL));
CREATE INDEX webhook_delivery_waiting_oldest ON "webhook_delivery" (endpoint_id, "position") WHERE ((status =
  'pending'::webhook_delivery_status) AND (next_attempt_at IS NOT NULL));
CREATE INDEX webhook_delivery_dead ON "webhook_delivery" (endpoint_id, "position") WHERE (status =
  'dead'::webhook_delivery_status);
-- Last of its table: between indexes that promise the same the planner takes the newest.
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_pkey" PRIMARY KEY (id, merchant_id);
GRANT SELECT ON "webhook_delivery" TO payments_merchant;
GRANT SELECT ON "webhook_delivery" TO payments_service;
GRANT USAGE ON SEQUENCE "webhook_delivery_id_seq" TO payments_service;

CREATE TABLE "webhook_attempt" (
  "delivery_id" bigint NOT NULL,
  "nth" integer NOT NULL,
  "merchant_id" integer NOT NULL,
  "status_code" smallint,
  "error" text,
  "duration_ms" integer NOT NULL,
  "answer" text NOT NULL,
  "address" text,
  "at" timestamptz(3) NOT NULL,
  CONSTRAINT "webhook_attempt_pkey" PRIMARY KEY (delivery_id, nth),
  CONSTRAINT "webhook_attempt_nth" CHECK (nth >= 1),
  CONSTRAINT "webhook_attempt_outcome" CHECK (num_nonnulls(status_code, error) = 1)
);
GRANT SELECT ON "webhook_attempt" TO payments_merchant;
GRANT SELECT ON "webhook_attempt" TO payments_service;

CREATE TABLE "team_member" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "name" text NOT NULL,
  "email" text NOT NULL,
  "role" member_role NOT NULL,
  "status" member_status NOT NULL DEFAULT 'invited',
  "second_factor_at" timestamptz(3),
  "made_for" text,
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "joined_at" timestamptz(3),
  "removed_at" timestamptz(3),
  "approver_since" timestamptz(3),
  CONSTRAINT "team_member_pkey" PRIMARY KEY (id),
  CONSTRAINT "team_member_email" CHECK (char_length(email) >= 3 AND char_length(email) <= 254 AND email =
    lower(email)),
  CONSTRAINT "team_member_name" CHECK (char_length(name) >= 1 AND char_length(name) <= 200),
  CONSTRAINT "team_member_removed" CHECK ((status = 'removed'::member_status) = (removed_at IS NOT NULL))
);
CREATE INDEX team_member_merchant_id_id_idx ON "team_member" (merchant_id, id);
CREATE INDEX team_member_email_idx ON "team_member" (email);
CREATE UNIQUE INDEX team_member_id_merchant_id_key ON "team_member" (id, merchant_id);
CREATE UNIQUE INDEX team_member_made_for_key ON "team_member" (made_for);
CREATE UNIQUE INDEX team_member_known ON "team_member" (merchant_id, email) WHERE (status <>
  'removed'::member_status);
GRANT SELECT ON "team_member" TO payments_merchant;
GRANT SELECT ON "team_member" TO payments_service;

CREATE TABLE "member_secret" (
  "member_id" integer NOT NULL,
  "merchant_id" integer NOT NULL,
  "password_hash" text,
  "totp_encrypted" bytea,
  "totp_step" bigint NOT NULL DEFAULT 0,
  "recovery_hashes" bytea[] DEFAULT ARRAY[]::bytea[],
  "invitation_hash" bytea,
  "invitation_expires_at" timestamptz(3),
  "reset_hash" bytea,
  "reset_expires_at" timestamptz(3),
  CONSTRAINT "member_secret_pkey" PRIMARY KEY (member_id)
);
CREATE UNIQUE INDEX member_secret_invitation_hash_key ON "member_secret" (invitation_hash);
CREATE UNIQUE INDEX member_secret_reset_hash_key ON "member_secret" (reset_hash);
CREATE UNIQUE INDEX member_secret_member_id_merchant_id_key ON "member_secret" (member_id, merchant_id);
GRANT SELECT ON "member_secret" TO payments_service;

CREATE UNLOGGED TABLE "sign_in_wait" (
  "name" text NOT NULL,
  "failures" integer NOT NULL,
  "until" timestamptz(3) NOT NULL,
  CONSTRAINT "sign_in_wait_pkey" PRIMARY KEY (name)
);
GRANT SELECT ON "sign_in_wait" TO payments_service;

CREATE TABLE "mail" (
  "id" uuid NOT NULL,
  "merchant_id" integer NOT NULL,
  "template" text NOT NULL,
  "encrypted" bytea,
  "created_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "sent_at" timestamptz(3),
  CONSTRAINT "mail_pkey" PRIMARY KEY (id)
);
CREATE INDEX mail_merchant_id_idx ON "mail" (merchant_id);
GRANT SELECT ON "mail" TO payments_service;

CREATE TABLE "key_spending" (
  "merchant_id" integer NOT NULL,
  "api_key_id" integer NOT NULL,
  "day" date NOT NULL,
  "whose" text NOT NULL,
  "maximum" bigint NOT NULL,
  "amount" bigint NOT NULL,
  CONSTRAINT "key_spending_pkey" PRIMARY KEY (api_key_id, day, whose),
  CONSTRAINT "key_spending_within" CHECK (amount >= 1 AND amount <= maximum)
);

CREATE UNLOGGED TABLE "rate_limit_window" (
  "key" varchar(255) NOT NULL,
  "points" integer NOT NULL DEFAULT 0,
  "expire" bigint,
  CONSTRAINT "rate_limit_window_pkey" PRIMARY KEY (key)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON "rate_limit_window" TO payments_service;

CREATE TABLE "audit_entry" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "actor" text NOT NULL,
  "operation" text NOT NULL,
  "target" text NOT NULL,
  "address" text,
  "request_id" uuid,
  "channel" text NOT NULL,
  "is_payment" boolean NOT NULL DEFAULT false,
  "before" jsonb,
  "after" jsonb,
  "at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "audit_entry_pkey" PRIMARY KEY (merchant_id, id)
);
CREATE INDEX audit_entry_merchant_id_target_id_idx ON "audit_entry" (merchant_id, target, id);
-- Entries of payments are left out: there are very many, and no query looks for them by actor or operation.
CREATE INDEX audit_entry_actor ON "audit_entry" (merchant_id, actor, id) WHERE (NOT is_payment);
CREATE INDEX audit_entry_operation ON "audit_entry" (merchant_id, operation, id) WHERE (NOT is_payment);
GRANT SELECT ON "audit_entry" TO payments_merchant;
GRANT SELECT ON "audit_entry" TO payments_service;
GRANT INSERT ("merchant_id", "actor", "operation", "target", "address", "request_id", "channel", "is_payment",
  "before", "after") ON "audit_entry" TO payments_merchant;
GRANT INSERT ("merchant_id", "actor", "operation", "target", "address", "request_id", "channel", "is_payment",
  "before", "after") ON "audit_entry" TO payments_service;
GRANT USAGE ON SEQUENCE "audit_entry_id_seq" TO payments_merchant;
GRANT USAGE ON SEQUENCE "audit_entry_id_seq" TO payments_service;

CREATE TABLE "audit_link" (
  "merchant_id" integer NOT NULL,
  "position" bigint NOT NULL,
  "entry_id" bigint NOT NULL,
  "hash" bytea NOT NULL,
  CONSTRAINT "audit_link_pkey" PRIMARY KEY (merchant_id, "position")
);
GRANT SELECT ON "audit_link" TO payments_merchant;
GRANT SELECT ON "audit_link" TO payments_service;

CREATE TABLE "audit_unchained" (
  "merchant_id" integer NOT NULL,
  "entry_id" bigint NOT NULL,
  CONSTRAINT "audit_unchained_pkey" PRIMARY KEY (merchant_id, entry_id)
);
GRANT INSERT, SELECT ON "audit_unchained" TO payments_merchant;
GRANT INSERT, SELECT ON "audit_unchained" TO payments_service;

CREATE TABLE "audit_head" (
  "merchant_id" integer NOT NULL,
  "position" bigint NOT NULL,
  "hash" bytea NOT NULL,
  "proof" bytea NOT NULL,
  "chained_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "audit_head_pkey" PRIMARY KEY (merchant_id)
);
GRANT SELECT ON "audit_head" TO payments_merchant;
GRANT SELECT ON "audit_head" TO payments_service;

CREATE TABLE "approval_verdict" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "payout_id" bigint,
  "member_id" integer NOT NULL,
  "role" member_role NOT NULL,
  "verdict" approval_status NOT NULL,
  "digest" bytea NOT NULL,
  "reason" text,
  "created_at" timestamptz(3) NOT NULL,
  "batch_id" integer,
  "settings_change_id" integer,
  "transaction_id" bigint,
  CONSTRAINT "approval_verdict_pkey" PRIMARY KEY (id),
  CONSTRAINT "approval_verdict_digest" CHECK (length(digest) = 32),
  CONSTRAINT "approval_verdict_reason" CHECK ((reason IS NOT NULL) = (verdict = 'rejected'::approval_status)
    AND char_length(reason) >= 1 AND char_length(reason) <= 200),
  CONSTRAINT "approval_verdict_role" CHECK (role = ANY (ARRAY['owner'::member_role, 'admin'::member_role,
    'finance'::member_role])),
  CONSTRAINT "approval_verdict_subject" CHECK (num_nonnulls(payout_id, batch_id, settings_change_id,
    transaction_id) = 1),
  CONSTRAINT "approval_verdict_verdict" CHECK (verdict = ANY (ARRAY['approved'::approval_status,
    'rejected'::approval_status]))
);
CREATE UNIQUE INDEX approval_verdict_payout_id_member_id_verdict_key ON "approval_verdict" (payout_id,
  member_id, verdict);
CREATE UNIQUE INDEX approval_verdict_batch_id_member_id_verdict_key ON "approval_verdict" (batch_id,
  member_id, verdict);
CREATE UNIQUE INDEX approval_verdict_settings_change_id_member_id_verdict_key ON "approval_verdict"
  (settings_change_id, member_id, verdict);
CREATE UNIQUE INDEX approval_verdict_transaction_id_member_id_verdict_key ON "approval_verdict"
  (transaction_id, member_id, verdict);
GRANT SELECT ON "approval_verdict" TO payments_merchant;
GRANT SELECT ON "approval_verdict" TO payments_service;

CREATE TABLE "batch" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "title" text,
  "payment_method" provider,
  "status" batch_status NOT NULL DEFAULT 'draft',
  "recipient_count" integer NOT NULL DEFAULT 0,
  "total_amount" bigint NOT NULL DEFAULT 0,
  "processing_count" integer NOT NULL DEFAULT 0,
  "succeeded_count" integer NOT NULL DEFAULT 0,
  "failed_count" integer NOT NULL DEFAULT 0,
  "cancelled_count" integer NOT NULL DEFAULT 0,
  "paid_amount" bigint NOT NULL DEFAULT 0,
  "returned_amount" bigint NOT NULL DEFAULT 0,
  "retry_of_id" integer,
  "approval" approval_status NOT NULL DEFAULT 'not_required',
  "approval_digest" bytea,
  "approval_expires_at" timestamptz(3),
  "approvals_required" smallint NOT NULL DEFAULT 0,
  "maker" text NOT NULL,
  "maker_member_ids" integer[] DEFAULT ARRAY[]::integer[],
  "made_for" text,
  "added_for" text[] DEFAULT ARRAY[]::text[],
  "created_at" timestamptz(3) NOT NULL,
  "started_at" timestamptz(3),
  "cancel_requested_at" timestamptz(3),
  "processed_at" timestamptz(3),
  "turn_at" timestamp(6) with time zone,
  CONSTRAINT "batch_pkey" PRIMARY KEY (id),
  CONSTRAINT "batch_amounts" CHECK (returned_amount >= 0 AND returned_amount <= paid_amount AND paid_amount <=
    total_amount),
  -- A payment that waits for approval, or was not approved, is never sent.
  CONSTRAINT "batch_approval" CHECK ((status <> 'pending_approval'::batch_status OR approval =
    'pending'::approval_status) AND CASE approval WHEN 'pending'::approval_status THEN status = ANY
    (ARRAY['pending_approval'::batch_status, 'cancelled'::batch_status]) WHEN 'rejected'::approval_status THEN
    status = 'cancelled'::batch_status WHEN 'expired'::approval_status THEN status = 'cancelled'::batch_status
    ELSE true END),
  CONSTRAINT "batch_approval_digest" CHECK ((approval_digest IS NOT NULL) = (approval <>
    'not_required'::approval_status) AND (approval_digest IS NULL OR length(approval_digest) = 32)),
  CONSTRAINT "batch_approval_expires_at" CHECK ((approval_expires_at IS NOT NULL) = (approval <>
    'not_required'::approval_status)),
  CONSTRAINT "batch_approvals_required" CHECK (approvals_required >= 0 AND approvals_required <= 3 AND
    (approvals_required > 0) = (approval <> 'not_required'::approval_status)),
  CONSTRAINT "batch_counts" CHECK (LEAST(processing_count, succeeded_count, failed_count, cancelled_count) >=
    0 AND (processing_count + succeeded_count + failed_count + cancelled_count) <= recipient_count),
  CONSTRAINT "batch_recipient_count" CHECK (recipient_count >= 0 AND recipient_count <= 10000),
  -- A batch ends when its last recipient has ended, and its status follows from how they ended.
  CONSTRAINT "batch_status" CHECK ( CASE WHEN status = ANY (ARRAY['draft'::batch_status,
    'pending_approval'::batch_status]) THEN (processing_count + succeeded_count + failed_count +
    cancelled_count) = 0 AND started_at IS NULL AND cancel_requested_at IS NULL AND processed_at IS NULL WHEN
    status = 'processing'::batch_status THEN started_at IS NOT NULL AND processed_at IS NULL AND
    (succeeded_count + failed_count + cancelled_count) < recipient_count ELSE processed_at IS NOT NULL AND
    (succeeded_count + failed_count + cancelled_count) = recipient_count AND CASE status WHEN
    'completed'::batch_status THEN started_at IS NOT NULL AND succeeded_count = recipient_count WHEN
    'failed'::batch_status THEN started_at IS NOT NULL AND failed_count = recipient_count WHEN
    'partially_completed'::batch_status THEN started_at IS NOT NULL AND cancelled_count = 0 AND
    succeeded_count > 0 AND failed_count > 0 ELSE cancel_requested_at IS NOT NULL END END),
  CONSTRAINT "batch_title" CHECK (char_length(title) >= 1 AND char_length(title) <= 200)
);
CREATE INDEX batch_merchant_id_id_idx ON "batch" (merchant_id, id);
CREATE UNIQUE INDEX batch_made_for_merchant_id_key ON "batch" (made_for, merchant_id);
-- Last of its table: between indexes that promise the same the planner takes the newest.
CREATE UNIQUE INDEX batch_id_merchant_id_key ON "batch" (id, merchant_id);
CREATE INDEX batch_processing ON "batch" (id) WHERE (status = 'processing'::batch_status);
CREATE INDEX batch_awaiting ON "batch" (approval_expires_at) WHERE (status =
  'pending_approval'::batch_status);
CREATE INDEX batch_waiting ON "batch" (merchant_id, approval_expires_at, id) WHERE (status =
  'pending_approval'::batch_status);
-- One batch at a time pays the failed recipients of another batch again; a cancelled one does not count.
CREATE UNIQUE INDEX batch_retry ON "batch" (retry_of_id) WHERE (status <> 'cancelled'::batch_status);
GRANT SELECT ON "batch" TO payments_merchant;
GRANT SELECT ON "batch" TO payments_service;

CREATE TABLE "batch_recipient" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "batch_id" integer NOT NULL,
  "name" text NOT NULL,
  "account" text NOT NULL,
  "amount" bigint NOT NULL,
  "payment_method" provider NOT NULL,
  "status" recipient_status NOT NULL DEFAULT 'pending',
  "operator_reference" text,
  "failure_reason" text,
  "failure_message" text,
  "settled_amount" bigint,
  "evidence_source" text,
  "sent_at" timestamptz(3),
  "settled_at" timestamptz(3),
  "reversed_at" timestamptz(3),
  "correlation_id" uuid NOT NULL DEFAULT gen_random_uuid(),
  CONSTRAINT "batch_recipient_pkey" PRIMARY KEY (id),
  CONSTRAINT "batch_recipient_account" CHECK (account ~ '^\+223[2-9][0-9]{7}$'::text),
  CONSTRAINT "batch_recipient_amount" CHECK (amount >= 1000),
  CONSTRAINT "batch_recipient_failure_reason" CHECK ((failure_reason IS NOT NULL) = (status =
    'failed'::recipient_status)),
  CONSTRAINT "batch_recipient_name" CHECK (char_length(name) >= 1 AND char_length(name) <= 200),
  CONSTRAINT "batch_recipient_reversed_at" CHECK (reversed_at IS NULL
    OR status = 'success'::recipient_status),
  CONSTRAINT "batch_recipient_sent_at" CHECK ((sent_at IS NULL) = (status = ANY
    (ARRAY['pending'::recipient_status, 'cancelled'::recipient_status]))),
  CONSTRAINT "batch_recipient_settled_amount" CHECK ((settled_amount IS NOT NULL) = (status =
    'success'::recipient_status) AND (settled_amount IS NULL OR settled_amount >= 1 AND settled_amount <=
    amount)),
  CONSTRAINT "batch_recipient_settled_at" CHECK ((settled_at IS NULL) = (status = ANY
    (ARRAY['pending'::recipient_status, 'processing'::recipient_status])))
);
CREATE INDEX batch_recipient_batch_id_id_idx ON "batch_recipient" (batch_id, id);
CREATE UNIQUE INDEX batch_recipient_id_merchant_id_key ON "batch_recipient" (id, merchant_id);
-- Lists the recipients that were not sent yet. Without the status, so that a settlement changes no index.
CREATE INDEX batch_recipient_unsent ON "batch_recipient" (payment_method, batch_id, id) WHERE (sent_at IS
  NULL);
CREATE UNIQUE INDEX batch_recipient_correlation_id_key ON "batch_recipient" (correlation_id);
GRANT SELECT ON "batch_recipient" TO payments_merchant;
GRANT SELECT ON "batch_recipient" TO payments_service;

CREATE TABLE "payment_link" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "title" text NOT NULL,
  "description" text,
  "amount" bigint,
  "url_slug" text NOT NULL,
  "usage_limit" integer,
  "usage_count" integer NOT NULL DEFAULT 0,
  "open_count" integer NOT NULL DEFAULT 0,
  "is_active" boolean NOT NULL DEFAULT true,
  "expires_at" timestamptz(3),
  "made_for" text,
  "created_at" timestamptz(3) NOT NULL,
  "updated_at" timestamptz(3) NOT NULL,
  CONSTRAINT "payment_link_pkey" PRIMARY KEY (id),
  CONSTRAINT "payment_link_amount" CHECK (amount >= 100 AND amount <= 1000000),
  CONSTRAINT "payment_link_counts" CHECK (usage_count >= 0 AND open_count >= 0),
  CONSTRAINT "payment_link_description" CHECK (char_length(description) >= 1 AND char_length(description) <=
    1000),
  CONSTRAINT "payment_link_title" CHECK (char_length(title) >= 1 AND char_length(title) <= 200),
  CONSTRAINT "payment_link_url_slug" CHECK (url_slug ~ '^[a-z0-9](-?[a-z0-9])*$'::text AND length(url_slug) >=
    3 AND length(url_slug) <= 64),
  CONSTRAINT "payment_link_usage_limit" CHECK (usage_limit >= 1)
);
CREATE UNIQUE INDEX payment_link_url_slug_key ON "payment_link" (url_slug);
CREATE INDEX payment_link_merchant_id_id_idx ON "payment_link" (merchant_id, id);
CREATE UNIQUE INDEX payment_link_made_for_merchant_id_key ON "payment_link" (made_for, merchant_id);
CREATE UNIQUE INDEX payment_link_id_merchant_id_key ON "payment_link" (id, merchant_id);
GRANT SELECT ON "payment_link" TO payments_merchant;
GRANT SELECT ON "payment_link" TO payments_service;
GRANT INSERT ("merchant_id", "title", "description", "amount", "url_slug", "usage_limit", "expires_at",
  "made_for", "created_at", "updated_at") ON "payment_link" TO payments_merchant;
GRANT UPDATE ("title", "description", "amount", "usage_limit", "is_active", "expires_at", "updated_at") ON
  "payment_link" TO payments_merchant;
GRANT USAGE ON SEQUENCE "payment_link_id_seq" TO payments_merchant;

CREATE TABLE "audit_pass" (
  "id" serial,
  "kind" text NOT NULL,
  "stage" text NOT NULL DEFAULT 'ledger_entry',
  "merchant_id_done" integer NOT NULL DEFAULT 0,
  "id_done" bigint NOT NULL DEFAULT 0,
  "id_last" bigint NOT NULL DEFAULT 0,
  "slices" integer NOT NULL DEFAULT 0,
  "problems" integer NOT NULL DEFAULT 0,
  "begun_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "ended_at" timestamptz(3),
  CONSTRAINT "audit_pass_pkey" PRIMARY KEY (id),
  CONSTRAINT "audit_pass_kind" CHECK (kind = ANY (ARRAY['rolling'::text, 'command'::text])),
  CONSTRAINT "audit_pass_stage" CHECK (stage = ANY (ARRAY['ledger_entry'::text, 'event'::text,
    'position'::text, 'transaction'::text, 'payout'::text, 'batch'::text, 'payment_link'::text,
    'payout_count'::text, 'balance_snapshot'::text, 'done'::text]))
);
CREATE UNIQUE INDEX audit_pass_rolling ON "audit_pass" ((true)) WHERE ((kind = 'rolling'::text) AND (ended_at
  IS NULL));
GRANT SELECT ON "audit_pass" TO payments_service;

CREATE TABLE "audit_pass_sum" (
  "pass_id" integer NOT NULL,
  "merchant_id" integer NOT NULL,
  "available" bigint NOT NULL,
  "reserved" bigint NOT NULL,
  "receivable" bigint NOT NULL,
  CONSTRAINT "audit_pass_sum_pkey" PRIMARY KEY (pass_id, merchant_id)
);

CREATE TABLE "operator_orphan" (
  "id" bigserial,
  "provider" provider NOT NULL,
  "kind" text NOT NULL,
  "correlation_id" uuid,
  "operator_ref" text NOT NULL,
  "client_ref" text,
  "amount" bigint NOT NULL,
  "counterparty" text,
  "posted_at" timestamptz(3) NOT NULL,
  "statement_day" date NOT NULL,
  "found_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "resolved_at" timestamptz(3),
  "resolution" text,
  CONSTRAINT "operator_orphan_pkey" PRIMARY KEY (id),
  CONSTRAINT "operator_orphan_amount" CHECK (amount >= 0),
  CONSTRAINT "operator_orphan_kind" CHECK (kind = ANY (ARRAY['collect'::text, 'disburse'::text,
    'reverse'::text])),
  CONSTRAINT "operator_orphan_resolved" CHECK ((resolved_at IS NULL) = (resolution IS NULL))
);
CREATE INDEX operator_orphan_correlation_id_idx ON "operator_orphan" (correlation_id);
CREATE UNIQUE INDEX operator_orphan_provider_operator_ref_kind_key ON "operator_orphan" (provider,
  operator_ref, kind);
GRANT INSERT, SELECT ON "operator_orphan" TO payments_service;
GRANT UPDATE ("resolved_at", "resolution") ON "operator_orphan" TO payments_service;
GRANT USAGE ON SEQUENCE "operator_orphan_id_seq" TO payments_service;

CREATE TABLE "sign_in_address" (
  "account" text NOT NULL,
  "address" text NOT NULL,
  "seen_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "sign_in_address_pkey" PRIMARY KEY (account, address)
);
GRANT SELECT ON "sign_in_address" TO payments_service;

CREATE TABLE "installation" (
  "singleton" boolean NOT NULL DEFAULT true,
  "id" uuid NOT NULL DEFAULT gen_random_uuid(),
  "epoch" integer NOT NULL DEFAULT 1,
  "system_identifier" text NOT NULL,
  "timeline" integer NOT NULL,
  "database_oid" text NOT NULL,
  "restored_at" timestamptz(3),
  CONSTRAINT "installation_pkey" PRIMARY KEY (singleton),
  CONSTRAINT "installation_epoch" CHECK (epoch > 0),
  CONSTRAINT "installation_singleton" CHECK (singleton)
);
GRANT SELECT ON "installation" TO payments_service;

CREATE TABLE "database_epoch" (
  "epoch" integer NOT NULL,
  "began_at" timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "reason" text NOT NULL,
  "data_until" timestamptz(3),
  "last_api_key_id" integer NOT NULL,
  "keys_handled_at" timestamptz(3),
  "accepted_at" timestamptz(3),
  "outcome" jsonb,
  CONSTRAINT "database_epoch_pkey" PRIMARY KEY (epoch)
);
GRANT SELECT ON "database_epoch" TO payments_service;
GRANT UPDATE ("keys_handled_at") ON "database_epoch" TO payments_service;

CREATE TABLE "event_gap" (
  "merchant_id" integer NOT NULL,
  "epoch" integer NOT NULL,
  "after_position" bigint NOT NULL,
  "last_position" bigint NOT NULL,
  CONSTRAINT "event_gap_pkey" PRIMARY KEY (merchant_id, epoch),
  CONSTRAINT "event_gap_positions" CHECK (last_position > after_position AND after_position >= 0)
);
GRANT SELECT ON "event_gap" TO payments_service;

CREATE TABLE "credential_change" (
  "id" bigserial,
  "api_key_id" integer NOT NULL,
  CONSTRAINT "credential_change_pkey" PRIMARY KEY (id)
);
GRANT SELECT ON "credential_change" TO payments_service;

CREATE UNLOGGED TABLE "link_slot" (
  "transaction_id" bigint NOT NULL,
  "merchant_id" integer NOT NULL,
  "payment_link_id" integer NOT NULL,
  "address" bytea NOT NULL,
  "created_at" timestamptz(3) NOT NULL,
  CONSTRAINT "link_slot_pkey" PRIMARY KEY (transaction_id)
);
CREATE INDEX link_slot_address_created_at_idx ON "link_slot" (address, created_at);

CREATE TABLE "settlement_exception" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "transaction_id" bigint NOT NULL,
  "requested_amount" bigint NOT NULL,
  "confirmed_amount" bigint NOT NULL,
  "state" settlement_exception_state NOT NULL DEFAULT 'open',
  "created_at" timestamptz(3) NOT NULL,
  "decided_by" text,
  "reason" text,
  "decided_at" timestamptz(3),
  CONSTRAINT "settlement_exception_pkey" PRIMARY KEY (id),
  CONSTRAINT "settlement_exception_amounts" CHECK (requested_amount > 0
    AND confirmed_amount > requested_amount AND
    confirmed_amount <= '9007199254740991'::bigint),
  CONSTRAINT "settlement_exception_decided" CHECK ((state <> 'open'::settlement_exception_state) = (decided_at
    IS NOT NULL) AND (decided_at IS NOT NULL) = (decided_by IS NOT NULL) AND (decided_at IS NOT NULL) =
    (reason IS NOT NULL)),
  CONSTRAINT "settlement_exception_words" CHECK (char_length(decided_by) >= 1 AND char_length(decided_by) <=
    200 AND char_length(reason) >= 1 AND char_length(reason) <= 1000)
);
CREATE UNIQUE INDEX settlement_exception_merchant_id_transaction_id_key ON "settlement_exception"
  (merchant_id, transaction_id);
GRANT SELECT ON "settlement_exception" TO payments_service;

CREATE TABLE "settings_change" (
  "id" serial,
  "merchant_id" integer NOT NULL,
  "before" jsonb NOT NULL,
  "after" jsonb NOT NULL,
  "approval" approval_status NOT NULL DEFAULT 'pending',
  "approval_digest" bytea NOT NULL,
  "approval_expires_at" timestamptz(3) NOT NULL,
  "approvals_required" smallint NOT NULL,
  "maker_member_id" integer NOT NULL,
  "created_at" timestamptz(3) NOT NULL,
  CONSTRAINT "settings_change_pkey" PRIMARY KEY (id),
  CONSTRAINT "settings_change_after" CHECK (jsonb_typeof(after) = 'object'::text AND after <> '{}'::jsonb),
  CONSTRAINT "settings_change_approval" CHECK (approval <> 'not_required'::approval_status),
  CONSTRAINT "settings_change_approval_digest" CHECK (length(approval_digest) = 32),
  CONSTRAINT "settings_change_approvals_required" CHECK (approvals_required >= 1 AND approvals_required <= 3)
);
CREATE INDEX settings_change_merchant_id_id_idx ON "settings_change" (merchant_id, id);
CREATE UNIQUE INDEX settings_change_id_merchant_id_key ON "settings_change" (id, merchant_id);
-- One change of the settings waits at a time, so that the members who decide see all that would change.
CREATE UNIQUE INDEX settings_change_waiting ON "settings_change" (merchant_id) WHERE (approval =
  'pending'::approval_status);
CREATE INDEX settings_change_awaiting ON "settings_change" (approval_expires_at) WHERE (approval =
  'pending'::approval_status);
GRANT SELECT ON "settings_change" TO payments_merchant;
GRANT SELECT ON "settings_change" TO payments_service;

CREATE TABLE "audit_email" (
  "merchant_id" integer NOT NULL,
  "position" bigint NOT NULL,
  "day" date NOT NULL,
  CONSTRAINT "audit_email_pkey" PRIMARY KEY (merchant_id)
);
GRANT SELECT ON "audit_email" TO payments_service;

CREATE TABLE "deposit_approval" (
  "transaction_id" bigint NOT NULL,
  "merchant_id" integer NOT NULL,
  "approval" approval_status NOT NULL DEFAULT 'pending',
  "approval_digest" bytea NOT NULL,
  "approval_expires_at" timestamptz(3) NOT NULL,
  "approvals_required" smallint NOT NULL,
  "maker" text NOT NULL,
  "maker_member_id" integer,
  CONSTRAINT "deposit_approval_pkey" PRIMARY KEY (transaction_id),
  CONSTRAINT "deposit_approval_approval" CHECK (approval <> 'not_required'::approval_status),
  CONSTRAINT "deposit_approval_digest" CHECK (length(approval_digest) = 32),
  CONSTRAINT "deposit_approval_required" CHECK (approvals_required >= 1 AND approvals_required <= 3)
);
CREATE UNIQUE INDEX deposit_approval_merchant_id_transaction_id_key ON "deposit_approval" (merchant_id,
  transaction_id);
CREATE INDEX deposit_approval_awaiting ON "deposit_approval" (approval_expires_at) WHERE (approval =
  'pending'::approval_status);
CREATE INDEX deposit_approval_waiting ON "deposit_approval" (merchant_id, approval_expires_at, transaction_id)
  WHERE (approval = 'pending'::approval_status);
GRANT SELECT ON "deposit_approval" TO payments_merchant;
GRANT SELECT ON "deposit_approval" TO payments_service;

-- Row-level security is the second wall between merchants; the first is the filter in every read. Requests of
-- a merchant read under the role `payments_merchant`: it sees the rows of the merchant in `app.merchant` of
-- its session, and no row where that is empty. The role `payments_service` serves what concerns all merchants
-- (sign-in, payers, callbacks, jobs). The role `payments_owner` owns the tables and the functions, and row-
-- level security is forced on it too. Policies show these two every row, because an ordinary account cannot
-- give BYPASSRLS. A migration that makes a table with a merchant writes the same statements for it.
DO $$
DECLARE
  isolated text;
  merchant_column text;
BEGIN
  FOREACH isolated IN ARRAY ARRAY['merchant', 'api_key', 'session', 'transaction', 'operator_request',
    'operator_exchange', 'operator_callback', 'ledger_entry', 'merchant_balance', 'event',
    'event_log_position', 'idempotency_key', 'audit_proven', 'transaction_count_change', 'transaction_count',
    'transaction_block', 'transaction_block_count', 'payout', 'payout_count', 'beneficiary',
    'webhook_endpoint', 'webhook_delivery', 'webhook_attempt', 'team_member', 'member_secret', 'mail',
    'key_spending', 'audit_entry', 'audit_link', 'audit_unchained', 'audit_head', 'approval_verdict',
    'batch', 'batch_recipient', 'payment_link', 'audit_pass_sum', 'event_gap', 'link_slot',
    'settlement_exception', 'settings_change', 'audit_email', 'deposit_approval', 'balance_snapshot',
    'request_due', 'recipient_call', 'transaction_hour']
  LOOP
    merchant_column := CASE isolated WHEN 'merchant' THEN 'id' ELSE 'merchant_id' END;
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', isolated);
    EXECUTE format('CREATE POLICY "every_row" ON %I TO payments_owner USING (true)', isolated);
    EXECUTE format('CREATE POLICY "every_merchant" ON %I TO payments_service USING (true)', isolated);
    -- A scalar subquery is read once per statement, so that it can be a condition of an index.
    EXECUTE format('CREATE POLICY "tenant_isolation" ON %I TO payments_merchant USING (%I =
      (SELECT nullif(current_setting(''app.merchant'', true), '''')::int))', isolated, merchant_column);
  END LOOP;
END $$;

-- Foreign keys.
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_issued_to_id_merchant_id_fkey" FOREIGN KEY (issued_to_id,
  merchant_id) REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES
  merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "session" ADD CONSTRAINT "session_member_id_merchant_id_fkey" FOREIGN KEY (member_id, merchant_id)
  REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "transaction" ADD CONSTRAINT "transaction_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES
  merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "transaction" ADD CONSTRAINT "transaction_merchant_id_refund_of_id_fkey" FOREIGN KEY (merchant_id,
  refund_of_id) REFERENCES transaction(merchant_id, id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "transaction" ADD CONSTRAINT "transaction_payment_link_id_merchant_id_fkey" FOREIGN KEY
  (payment_link_id, merchant_id) REFERENCES payment_link(id, merchant_id) ON UPDATE CASCADE ON DELETE
  RESTRICT;
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_merchant_id_transaction_id_fkey" FOREIGN KEY
  (merchant_id, transaction_id) REFERENCES transaction(merchant_id, id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_payout_id_merchant_id_fkey" FOREIGN KEY
  (payout_id, merchant_id) REFERENCES payout(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_recipient_id_merchant_id_fkey" FOREIGN KEY
  (recipient_id, merchant_id) REFERENCES batch_recipient(id, merchant_id) ON UPDATE CASCADE ON DELETE
  RESTRICT;
ALTER TABLE "merchant_balance" ADD CONSTRAINT "merchant_balance_merchant_id_fkey" FOREIGN KEY (merchant_id)
  REFERENCES merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "idempotency_key" ADD CONSTRAINT "idempotency_key_merchant_id_fkey" FOREIGN KEY (merchant_id)
  REFERENCES merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "payout" ADD CONSTRAINT "payout_beneficiary_id_merchant_id_fkey" FOREIGN KEY (beneficiary_id,
  merchant_id) REFERENCES beneficiary(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "payout" ADD CONSTRAINT "payout_maker_member_id_merchant_id_fkey" FOREIGN KEY (maker_member_id,
  merchant_id) REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "payout" ADD CONSTRAINT "payout_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES
  merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "beneficiary" ADD CONSTRAINT "beneficiary_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES
  merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "webhook_endpoint" ADD CONSTRAINT "webhook_endpoint_merchant_id_fkey" FOREIGN KEY (merchant_id)
  REFERENCES merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_endpoint_id_merchant_id_fkey" FOREIGN KEY
  (endpoint_id, merchant_id) REFERENCES webhook_endpoint(id, merchant_id) ON UPDATE CASCADE ON DELETE
  RESTRICT;
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_merchant_id_position_fkey" FOREIGN KEY
  (merchant_id, "position") REFERENCES event(merchant_id, "position") ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "webhook_attempt" ADD CONSTRAINT "webhook_attempt_delivery_id_merchant_id_fkey" FOREIGN KEY
  (delivery_id, merchant_id) REFERENCES webhook_delivery(id, merchant_id) ON UPDATE CASCADE ON DELETE
  RESTRICT;
ALTER TABLE "team_member" ADD CONSTRAINT "team_member_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES
  merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "member_secret" ADD CONSTRAINT "member_secret_member_id_merchant_id_fkey" FOREIGN KEY (member_id,
  merchant_id) REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "mail" ADD CONSTRAINT "mail_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES merchant(id) ON
  UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_batch_id_merchant_id_fkey" FOREIGN KEY
  (batch_id, merchant_id) REFERENCES batch(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_member_id_merchant_id_fkey" FOREIGN KEY
  (member_id, merchant_id) REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_merchant_id_transaction_id_fkey" FOREIGN KEY
  (merchant_id, transaction_id) REFERENCES deposit_approval(merchant_id, transaction_id) ON UPDATE CASCADE ON
  DELETE RESTRICT;
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_payout_id_merchant_id_fkey" FOREIGN KEY
  (payout_id, merchant_id) REFERENCES payout(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_settings_change_id_merchant_id_fkey" FOREIGN
  KEY (settings_change_id, merchant_id) REFERENCES settings_change(id, merchant_id) ON UPDATE CASCADE ON
  DELETE RESTRICT;
ALTER TABLE "batch" ADD CONSTRAINT "batch_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES merchant(id)
  ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "batch" ADD CONSTRAINT "batch_retry_of_id_merchant_id_fkey" FOREIGN KEY (retry_of_id, merchant_id)
  REFERENCES batch(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "batch_recipient" ADD CONSTRAINT "batch_recipient_batch_id_merchant_id_fkey" FOREIGN KEY
  (batch_id, merchant_id) REFERENCES batch(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "payment_link" ADD CONSTRAINT "payment_link_merchant_id_fkey" FOREIGN KEY (merchant_id) REFERENCES
  merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "settlement_exception" ADD CONSTRAINT "settlement_exception_merchant_id_transaction_id_fkey"
  FOREIGN KEY (merchant_id, transaction_id) REFERENCES transaction(merchant_id, id) ON UPDATE CASCADE ON
  DELETE RESTRICT;
ALTER TABLE "settings_change" ADD CONSTRAINT "settings_change_maker_member_id_merchant_id_fkey" FOREIGN KEY
  (maker_member_id, merchant_id) REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "settings_change" ADD CONSTRAINT "settings_change_merchant_id_fkey" FOREIGN KEY (merchant_id)
  REFERENCES merchant(id) ON UPDATE CASCADE ON DELETE RESTRICT;
ALTER TABLE "deposit_approval" ADD CONSTRAINT "deposit_approval_merchant_id_transaction_id_fkey" FOREIGN KEY
  (merchant_id, transaction_id) REFERENCES transaction(merchant_id, id) ON UPDATE CASCADE ON DELETE RESTRICT;
