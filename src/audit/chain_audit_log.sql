-- Adds links to the chains of merchants, moves their heads, and takes the entries off the list of unchained
-- ones (`audit_unchained`). The caller holds the lock of the chains (`locks.auditChain`).
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION chain_audit_log(
  merchants int[],
  ids bigint[],
  positions bigint[],
  hashes bytea[],
  head_merchants int[],
  head_positions bigint[],
  head_hashes bytea[],
  proofs bytea[]
) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  DELETE FROM audit_unchained u USING unnest(merchants, ids) AS s(merchant_id, entry_id)
  WHERE u.merchant_id = s.merchant_id AND u.entry_id = s.entry_id;
  INSERT INTO audit_link (merchant_id, entry_id, position, hash) SELECT *
    FROM unnest(merchants, ids, positions, hashes);
  INSERT INTO audit_head AS h (merchant_id, position, hash, proof)
  SELECT * FROM unnest(head_merchants, head_positions, head_hashes, proofs)
  ON CONFLICT (merchant_id) DO UPDATE
    SET position = excluded.position, hash = excluded.hash, proof = excluded.proof, chained_at = now()
$$;
