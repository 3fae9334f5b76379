-- The list of payouts of a period is read by the ids of its days: see `payout_ids_of_period`.
CREATE INDEX payout_by_day ON "payout" (merchant_id, date_bin('1 day', created_at, '2000-01-01 UTC'), id)
  WHERE id > 0;
