-- CreateEnum
CREATE TYPE "locale" AS ENUM ('fr', 'en');

-- CreateEnum
CREATE TYPE "credential_kind" AS ENUM ('key', 'session');

-- CreateEnum
CREATE TYPE "member_role" AS ENUM ('owner', 'admin', 'finance', 'viewer');

-- CreateEnum
CREATE TYPE "member_status" AS ENUM ('invited', 'active', 'removed');

-- AlterTable
ALTER TABLE "merchant" ADD COLUMN     "locale" "locale" NOT NULL DEFAULT 'fr',
ADD COLUMN     "notification_email" TEXT;

-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "expires_at" TIMESTAMPTZ(3),
ADD COLUMN     "kind" "credential_kind" NOT NULL DEFAULT 'key',
ADD COLUMN     "last_used_at" TIMESTAMPTZ(3),
ADD COLUMN     "last_used_from" TEXT,
ADD COLUMN     "member_id" INTEGER,
ALTER COLUMN "secret_hash" DROP NOT NULL,
ALTER COLUMN "pepper_id" DROP NOT NULL;

-- CreateTable
CREATE TABLE "team_member" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "role" "member_role" NOT NULL,
    "status" "member_status" NOT NULL DEFAULT 'invited',
    "second_factor_at" TIMESTAMPTZ(3),
    "made_for" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "joined_at" TIMESTAMPTZ(3),
    "removed_at" TIMESTAMPTZ(3),

    CONSTRAINT "team_member_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "member_secret" (
    "member_id" INTEGER NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "password_hash" TEXT,
    "totp_sealed" BYTEA,
    "totp_step" BIGINT NOT NULL DEFAULT 0,
    "recovery_hashes" BYTEA[] DEFAULT ARRAY[]::BYTEA[],
    "invitation_hash" BYTEA,
    "invitation_expires_at" TIMESTAMPTZ(3),
    "reset_hash" BYTEA,
    "reset_expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "member_secret_pkey" PRIMARY KEY ("member_id")
);

-- CreateTable
CREATE TABLE "sign_in_wait" (
    "name" TEXT NOT NULL,
    "failures" INTEGER NOT NULL,
    "until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "sign_in_wait_pkey" PRIMARY KEY ("name")
);

-- CreateTable
CREATE TABLE "mail" (
    "id" UUID NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "template" TEXT NOT NULL,
    "sealed" BYTEA,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "sent_at" TIMESTAMPTZ(3),

    CONSTRAINT "mail_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "team_member_merchant_id_id_idx" ON "team_member"("merchant_id", "id");

-- CreateIndex
CREATE INDEX "team_member_email_idx" ON "team_member"("email");

-- CreateIndex
CREATE UNIQUE INDEX "team_member_id_merchant_id_key" ON "team_member"("id", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "team_member_made_for_key" ON "team_member"("made_for");

-- CreateIndex
CREATE UNIQUE INDEX "member_secret_invitation_hash_key" ON "member_secret"("invitation_hash");

-- CreateIndex
CREATE UNIQUE INDEX "member_secret_reset_hash_key" ON "member_secret"("reset_hash");

-- CreateIndex
CREATE UNIQUE INDEX "member_secret_member_id_merchant_id_key" ON "member_secret"("member_id", "merchant_id");

-- CreateIndex
CREATE INDEX "mail_merchant_id_idx" ON "mail"("merchant_id");

-- CreateIndex
CREATE INDEX "api_key_member_id_idx" ON "api_key"("member_id");

-- AddForeignKey
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_member_id_merchant_id_fkey" FOREIGN KEY ("member_id", "merchant_id") REFERENCES "team_member"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "team_member" ADD CONSTRAINT "team_member_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "member_secret" ADD CONSTRAINT "member_secret_member_id_merchant_id_fkey" FOREIGN KEY ("member_id", "merchant_id") REFERENCES "team_member"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mail" ADD CONSTRAINT "mail_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- What a merchant sets for itself.
ALTER TABLE "merchant"
  ADD CONSTRAINT "merchant_notification_email" CHECK (char_length("notification_email") BETWEEN 3 AND 254),
  ADD CONSTRAINT "merchant_ip_whitelist" CHECK (cardinality("ip_whitelist") <= 50);

-- What a credential is decides what it has. Only a key has a secret: what stands for a person was proven by a password.
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_kind" CHECK (CASE "kind"
  WHEN 'key' THEN "secret_hash" IS NOT NULL AND "pepper_id" IS NOT NULL AND "member_id" IS NULL
  ELSE "secret_hash" IS NULL AND "pepper_id" IS NULL AND "member_id" IS NOT NULL AND "expires_at" IS NOT NULL END);
ALTER TABLE "team_member"
  ADD CONSTRAINT "team_member_name" CHECK (char_length("name") BETWEEN 1 AND 200),
  ADD CONSTRAINT "team_member_email" CHECK (char_length("email") BETWEEN 3 AND 254 AND "email" = lower("email")),
  ADD CONSTRAINT "team_member_removed" CHECK (("status" = 'removed') = ("removed_at" IS NOT NULL));
CREATE UNIQUE INDEX "team_member_known" ON "team_member" ("merchant_id", "email") WHERE "status" <> 'removed';

-- A crash may forget who failed how often.
ALTER TABLE "sign_in_wait" SET UNLOGGED;

-- Of a member whose role or standing changes every session ends in the same transaction, and with it every token; it waits
-- for the money that these sessions are moving (`end_access`). And an owner stays: whoever changes a merchant's owners
-- holds its row, so that of two who leave at once the second sees that it is the last.
CREATE FUNCTION change_member() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF OLD.status = 'removed' THEN
    RAISE EXCEPTION 'team member % was removed', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.status = 'active' AND OLD.role = 'owner' AND (NEW.status <> 'active' OR NEW.role <> 'owner') THEN
    PERFORM FROM merchant WHERE id = OLD.merchant_id FOR NO KEY UPDATE;
    IF NOT EXISTS (
      SELECT FROM team_member m
      WHERE m.merchant_id = OLD.merchant_id AND m.role = 'owner' AND m.status = 'active' AND m.id <> OLD.id) THEN
      RAISE EXCEPTION 'merchant % keeps its last owner', OLD.merchant_id
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'team_member_last_owner';
    END IF;
  END IF;
  UPDATE api_key k SET revoked_at = now() WHERE k.member_id = OLD.id AND k.revoked_at IS NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER "team_member_change" BEFORE UPDATE OF "role", "status" ON "team_member" FOR EACH ROW
  WHEN (OLD.role <> NEW.role OR OLD.status <> NEW.status) EXECUTE FUNCTION change_member();

-- Tells the merchant's log of what happened to its access. Of money nothing can be told here.
CREATE FUNCTION note_access(merchant int, kind text, what jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF kind <> ALL (ARRAY['team_login', 'api_key_created', 'security_alert']) THEN
    RAISE EXCEPTION '% tells of no access', kind USING ERRCODE = 'insufficient_privilege';
  END IF;
  INSERT INTO event (merchant_id, type, data, created_at) VALUES (merchant, kind, what, service_now());
END $$;

-- A letter is sent once the transaction that wrote it is committed, and tried again for two days. Letters leave one after
-- another: a mail server that hangs keeps no other job from its place.
CREATE FUNCTION enqueue_mail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job(
    'mail.send', json_build_object('mailId', NEW.id), queue_name => 'mail', max_attempts => 15);
  RETURN NULL;
END $$;
CREATE TRIGGER "mail_sending" AFTER INSERT ON "mail" FOR EACH ROW EXECUTE FUNCTION enqueue_mail();

-- Somebody wants a new password. Whether there is such a member is looked up by the job: who asks hears nothing of it, also
-- not by the time that the answer takes.
CREATE FUNCTION request_password_reset(email text, merchant int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job('members.reset-password', json_build_object('email', email, 'merchantId', merchant),
    queue_name => 'mail', max_attempts => 5);
END $$;

-- Forgets sessions a month after their end, what was sent after three, and failures of yesterday. @returns how many rows
CREATE FUNCTION sweep_people() RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  sessions int;
  mails int;
  waits int;
BEGIN
  DELETE FROM api_key WHERE id IN (
    SELECT id FROM api_key
    WHERE kind = 'session' AND least(revoked_at, expires_at) < now() - interval '30 days' LIMIT 1000);
  GET DIAGNOSTICS sessions = ROW_COUNT;
  DELETE FROM mail WHERE id IN (SELECT id FROM mail WHERE created_at < now() - interval '90 days' LIMIT 1000);
  GET DIAGNOSTICS mails = ROW_COUNT;
  DELETE FROM sign_in_wait WHERE name IN (
    SELECT name FROM sign_in_wait WHERE until < now() - interval '1 day' LIMIT 1000);
  GET DIAGNOSTICS waits = ROW_COUNT;
  RETURN sessions + mails + waits;
END $$;

SELECT wall_in(name) FROM unnest(ARRAY['team_member', 'member_secret', 'mail']::regclass[]) AS name;
GRANT SELECT, INSERT, UPDATE ON "team_member", "member_secret", "mail" TO payments_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON "sign_in_wait" TO payments_service;
GRANT USAGE ON SEQUENCE "team_member_id_seq" TO payments_service;
GRANT SELECT ON "team_member" TO payments_merchant;
-- All of a credential but what proves it. The public half of a key says to its merchant which one it is; of a session it is
-- a name that opens nothing.
GRANT SELECT ("id", "merchant_id", "kind", "name", "key", "scopes", "version", "member_id", "expires_at", "last_used_at",
  "last_used_from", "revoked_at", "created_at") ON "api_key" TO payments_merchant;
REVOKE EXECUTE ON FUNCTION change_member, note_access, enqueue_mail, request_password_reset, sweep_people FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note_access, request_password_reset, sweep_people TO payments_service;
