-- The author and the time of the request that a batch be processed, where that needs an approval: another
-- member than the maker may request it.
ALTER TABLE batch
  ADD COLUMN approval_requested_by text,
  ADD COLUMN approval_requester_id integer,
  ADD COLUMN approval_requested_at timestamptz(3),
  -- A batch can have an approval without these columns only where a node of the previous release processed it
  -- while this migration ran.
  ADD CONSTRAINT batch_approval_requested CHECK (
    num_nulls(approval_requested_by, approval_requested_at) IN (0, 2)
    AND (approval_requested_by IS NULL OR approval <> 'not_required')
    AND (approval_requester_id IS NULL OR approval_requested_by IS NOT NULL)),
  ADD CONSTRAINT batch_approval_requester_id_merchant_id_fkey FOREIGN KEY (approval_requester_id, merchant_id)
    REFERENCES team_member(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;

-- The audit log names the actor who processed a batch. The member who received the secret of an API key is
-- known only where all that was done to the batch was done by one member.
UPDATE batch b
SET approval_requested_by = asked.actor,
  approval_requester_id = (
    SELECT t.id FROM team_member t
    WHERE t.merchant_id = b.merchant_id AND (asked.actor = 'member:' || t.id
      OR asked.actor LIKE 'api_key:%' AND b.maker_member_ids = ARRAY[t.id])),
  approval_requested_at = b.approval_expires_at - interval '7 days'
FROM (
  SELECT w.id, coalesce((
    SELECT e.actor FROM audit_entry e
    WHERE e.merchant_id = w.merchant_id AND e.target = 'batch:' || w.id AND e.operation = 'processBatch'
    ORDER BY e.id LIMIT 1), w.maker) AS actor
  FROM batch w WHERE w.approval <> 'not_required') AS asked
WHERE b.id = asked.id;
