-- One payment of a call that records many: `collect_many`, `deposit_many` and `create_payouts`.
CREATE TYPE collection_item AS (
  merchant_id integer,
  api_key_id integer,
  api_key_version integer,
  provider provider,
  phone text,
  amount bigint,
  reference text,
  request jsonb,
  identity uuid,
  client_address text,
  recording audit_recording
);

CREATE TYPE deposit_item AS (
  merchant_id integer,
  api_key_id integer,
  api_key_version integer,
  provider provider,
  phone text,
  amount bigint,
  reference text,
  request jsonb,
  identity uuid,
  client_address text,
  recording audit_recording,
  daily_limit daily_limit,
  refund_of_id bigint
);

CREATE TYPE payout_item AS (
  merchant_id integer,
  api_key_id integer,
  api_key_version integer,
  provider provider,
  phone text,
  amount bigint,
  reference text,
  request jsonb,
  identity uuid,
  client_address text,
  recording audit_recording,
  daily_limit daily_limit,
  scheduled_at timestamptz(3),
  beneficiary_id integer,
  beneficiary_name text
);
