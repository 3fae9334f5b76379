-- CreateEnum
CREATE TYPE "webhook_delivery_status" AS ENUM ('pending', 'delivered', 'dead');

-- CreateTable
CREATE TABLE "webhook_endpoint" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "slot" SMALLINT,
    "url" TEXT NOT NULL,
    "events" TEXT[],
    "secret_sealed" BYTEA NOT NULL,
    "previous_secret_sealed" BYTEA,
    "previous_secret_until" TIMESTAMPTZ(3),
    "is_active" BOOLEAN NOT NULL DEFAULT true,
    "failure_count" INTEGER NOT NULL DEFAULT 0,
    "failing_since" TIMESTAMPTZ(3),
    "disabled_at" TIMESTAMPTZ(3),
    "last_success_at" TIMESTAMPTZ(3),
    "last_failure_at" TIMESTAMPTZ(3),
    "paused_until" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "removed_at" TIMESTAMPTZ(3),
    "made_for" TEXT,
    "rotated_for" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_endpoint_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_delivery" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "endpoint_id" INTEGER NOT NULL,
    "position" BIGINT,
    "type" TEXT NOT NULL,
    "status" "webhook_delivery_status" NOT NULL DEFAULT 'pending',
    "attempt_count" INTEGER NOT NULL DEFAULT 0,
    "attempts_total" INTEGER NOT NULL DEFAULT 0,
    "next_attempt_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL
);

-- CreateTable
CREATE TABLE "webhook_attempt" (
    "delivery_id" BIGINT NOT NULL,
    "nth" INTEGER NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "status_code" SMALLINT,
    "error" TEXT,
    "duration_ms" INTEGER NOT NULL,
    "answer" TEXT NOT NULL,
    "address" TEXT,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "webhook_attempt_pkey" PRIMARY KEY ("delivery_id","nth")
);

-- CreateIndex
CREATE INDEX "webhook_endpoint_merchant_id_id_idx" ON "webhook_endpoint"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "webhook_endpoint_made_for_merchant_id_key" ON "webhook_endpoint"("made_for", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "webhook_endpoint_merchant_id_slot_key" ON "webhook_endpoint"("merchant_id", "slot");

-- CreateIndex
CREATE INDEX "webhook_delivery_endpoint_id_id_idx" ON "webhook_delivery"("endpoint_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "webhook_delivery_endpoint_id_position_key" ON "webhook_delivery"("endpoint_id", "position");

-- Last of their tables: between indexes that promise the same the planner takes the newest.
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_pkey" PRIMARY KEY ("id","merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "webhook_endpoint_id_merchant_id_key" ON "webhook_endpoint"("id", "merchant_id");

-- AddForeignKey
ALTER TABLE "webhook_endpoint" ADD CONSTRAINT "webhook_endpoint_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_endpoint_id_merchant_id_fkey" FOREIGN KEY ("endpoint_id", "merchant_id") REFERENCES "webhook_endpoint"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_merchant_id_position_fkey" FOREIGN KEY ("merchant_id", "position") REFERENCES "event"("merchant_id", "position") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_attempt" ADD CONSTRAINT "webhook_attempt_delivery_id_merchant_id_fkey" FOREIGN KEY ("delivery_id", "merchant_id") REFERENCES "webhook_delivery"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

-- Bounds that hold whatever the code does. A sixth endpoint finds no place.
ALTER TABLE "webhook_endpoint"
  ADD CONSTRAINT "webhook_endpoint_slot" CHECK (
    ("slot" IS NULL) = ("removed_at" IS NOT NULL) AND ("slot" IS NULL OR "slot" BETWEEN 1 AND 5)
  ),
  ADD CONSTRAINT "webhook_endpoint_url" CHECK (char_length("url") BETWEEN 1 AND 2048),
  ADD CONSTRAINT "webhook_endpoint_events" CHECK (cardinality("events") > 0),
  ADD CONSTRAINT "webhook_endpoint_previous_secret" CHECK (
    ("previous_secret_sealed" IS NULL) = ("previous_secret_until" IS NULL)
  ),
  ADD CONSTRAINT "webhook_endpoint_failure_count" CHECK ("failure_count" >= 0),
  -- Nothing is sent to what is not active, or gone.
  ADD CONSTRAINT "webhook_endpoint_due_at" CHECK ("due_at" IS NULL OR "is_active" AND "removed_at" IS NULL),
  ADD CONSTRAINT "webhook_endpoint_disabled_at" CHECK ("disabled_at" IS NULL OR NOT "is_active");
ALTER TABLE "webhook_delivery"
  -- A test is no event, and is on record when it was sent.
  ADD CONSTRAINT "webhook_delivery_position" CHECK (("position" IS NULL) = ("type" = 'test')),
  ADD CONSTRAINT "webhook_delivery_test" CHECK ("position" IS NOT NULL OR "status" <> 'pending'),
  ADD CONSTRAINT "webhook_delivery_attempts" CHECK ("attempt_count" BETWEEN 0 AND "attempts_total"),
  ADD CONSTRAINT "webhook_delivery_next_attempt_at" CHECK ("next_attempt_at" IS NULL OR "status" = 'pending'),
  ADD CONSTRAINT "webhook_delivery_ended_at" CHECK (("ended_at" IS NULL) = ("status" = 'pending'));
ALTER TABLE "webhook_attempt"
  ADD CONSTRAINT "webhook_attempt_nth" CHECK ("nth" >= 1),
  ADD CONSTRAINT "webhook_attempt_outcome" CHECK (num_nonnulls("status_code", "error") = 1);

-- The lanes: which endpoints to look at; of one endpoint what is due at once, in order, what waits, by its time and in
-- order, and what was given up.
CREATE INDEX "webhook_endpoint_due" ON "webhook_endpoint" ("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "webhook_delivery_fresh" ON "webhook_delivery" ("endpoint_id", "position")
  WHERE "status" = 'pending' AND "next_attempt_at" IS NULL;
CREATE INDEX "webhook_delivery_waiting" ON "webhook_delivery" ("endpoint_id", "next_attempt_at")
  WHERE "status" = 'pending' AND "next_attempt_at" IS NOT NULL;
CREATE INDEX "webhook_delivery_waiting_oldest" ON "webhook_delivery" ("endpoint_id", "position")
  WHERE "status" = 'pending' AND "next_attempt_at" IS NOT NULL;
CREATE INDEX "webhook_delivery_dead" ON "webhook_delivery" ("endpoint_id", "position") WHERE "status" = 'dead';

ALTER TABLE "webhook_endpoint" SET (fillfactor = 50);

-- Lifecycles: the rows of `states.ts`.
INSERT INTO "lifecycle_move" ("lifecycle", "from_status", "to_status") VALUES
  ('webhook_delivery', 'pending', 'delivered'),
  ('webhook_delivery', 'pending', 'dead'),
  ('webhook_delivery', 'delivered', 'pending'),
  ('webhook_delivery', 'dead', 'pending'),
  ('webhook_delivery', 'dead', 'delivered');

-- The walls. A merchant's requests read all of it but the secrets, and write through functions.
SELECT wall_in(name) FROM unnest(ARRAY['webhook_endpoint', 'webhook_delivery', 'webhook_attempt']::regclass[]) AS name;
GRANT SELECT ON "webhook_endpoint", "webhook_delivery", "webhook_attempt" TO payments_service;
GRANT SELECT ON "webhook_delivery", "webhook_attempt" TO payments_merchant;
GRANT SELECT ("id", "merchant_id", "slot", "url", "events", "previous_secret_until", "is_active", "failure_count",
  "failing_since", "disabled_at", "last_success_at", "last_failure_at", "paused_until", "due_at", "removed_at", "made_for",
  "rotated_for", "created_at", "updated_at") ON "webhook_endpoint" TO payments_merchant;
-- The ids of what is sealed, and of tests, are drawn before they are written.
GRANT USAGE ON SEQUENCE "webhook_endpoint_id_seq", "webhook_delivery_id_seq" TO payments_service;
