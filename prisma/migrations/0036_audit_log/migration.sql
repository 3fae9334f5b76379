-- CreateTable
CREATE TABLE "audit_entry" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "actor" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "address" TEXT,
    "request_id" UUID,
    "door" TEXT NOT NULL,
    "is_payment" BOOLEAN NOT NULL DEFAULT false,
    "before" JSONB,
    "after" JSONB,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_entry_pkey" PRIMARY KEY ("merchant_id","id")
);

-- CreateTable
CREATE TABLE "audit_seal" (
    "merchant_id" INTEGER NOT NULL,
    "position" BIGINT NOT NULL,
    "entry_id" BIGINT NOT NULL,
    "hash" BYTEA NOT NULL,

    CONSTRAINT "audit_seal_pkey" PRIMARY KEY ("merchant_id","position")
);

-- CreateTable
CREATE TABLE "audit_unsealed" (
    "merchant_id" INTEGER NOT NULL,
    "entry_id" BIGINT NOT NULL,

    CONSTRAINT "audit_unsealed_pkey" PRIMARY KEY ("merchant_id","entry_id")
);

-- CreateTable
CREATE TABLE "audit_head" (
    "merchant_id" INTEGER NOT NULL,
    "position" BIGINT NOT NULL,
    "hash" BYTEA NOT NULL,
    "proof" BYTEA NOT NULL,
    "sealed_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_head_pkey" PRIMARY KEY ("merchant_id")
);

-- CreateIndex
CREATE INDEX "audit_entry_merchant_id_target_id_idx" ON "audit_entry"("merchant_id", "target", "id");

-- Below: written by hand. The audit log: whoever changes something writes its entry with the change. Entries are only added;
-- their merchant's chain is made after the commit, so that no writer waits for another.

-- Of payments there are very many, and nobody looks for them by these.
CREATE INDEX "audit_entry_actor" ON "audit_entry" ("merchant_id", "actor", "id") WHERE NOT "is_payment";
CREATE INDEX "audit_entry_operation" ON "audit_entry" ("merchant_id", "operation", "id") WHERE NOT "is_payment";

CREATE TRIGGER "audit_entry_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entry"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER "audit_seal_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_seal"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION guard_audit_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.merchant_id = OLD.merchant_id AND NEW.position > OLD.position THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'audit head of merchant %: a chain only grows', OLD.merchant_id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "audit_head_guard" BEFORE UPDATE ON "audit_head" FOR EACH ROW EXECUTE FUNCTION guard_audit_head();
CREATE TRIGGER "audit_head_kept" BEFORE DELETE OR TRUNCATE ON "audit_head" FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Adds links to the chains of merchants, and moves their heads. Whoever calls it holds the sealer's lock.
CREATE FUNCTION seal_audit_log(
  merchants int[], ids bigint[], positions bigint[], hashes bytea[],
  head_merchants int[], head_positions bigint[], head_hashes bytea[], proofs bytea[]
) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  DELETE FROM audit_unsealed u USING unnest(merchants, ids) AS s(merchant_id, entry_id)
  WHERE u.merchant_id = s.merchant_id AND u.entry_id = s.entry_id;
  INSERT INTO audit_seal (merchant_id, entry_id, position, hash) SELECT * FROM unnest(merchants, ids, positions, hashes);
  INSERT INTO audit_head AS h (merchant_id, position, hash, proof)
  SELECT * FROM unnest(head_merchants, head_positions, head_hashes, proofs)
  ON CONFLICT (merchant_id) DO UPDATE
    SET position = excluded.position, hash = excluded.hash, proof = excluded.proof, sealed_at = now()
$$;

REVOKE EXECUTE ON FUNCTION guard_audit_head, seal_audit_log FROM PUBLIC;
GRANT EXECUTE ON FUNCTION seal_audit_log TO payments_service;

SELECT wall_in(name)
FROM unnest(ARRAY['audit_entry', 'audit_seal', 'audit_unsealed', 'audit_head']::regclass[]) AS name;
GRANT SELECT ON "audit_entry", "audit_seal", "audit_unsealed", "audit_head" TO payments_service, payments_merchant;
GRANT INSERT ("merchant_id", "actor", "operation", "target", "address", "request_id", "door", "is_payment", "before", "after")
  ON "audit_entry" TO payments_service, payments_merchant;
GRANT INSERT ON "audit_unsealed" TO payments_service, payments_merchant;
GRANT USAGE ON SEQUENCE "audit_entry_id_seq" TO payments_service, payments_merchant;
