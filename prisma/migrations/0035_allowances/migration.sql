-- CreateTable
CREATE TABLE "allowance" (
    "key" VARCHAR(255) NOT NULL,
    "points" INTEGER NOT NULL DEFAULT 0,
    "expire" BIGINT,

    CONSTRAINT "allowance_pkey" PRIMARY KEY ("key")
);

ALTER TABLE "allowance" SET UNLOGGED;

GRANT SELECT, INSERT, UPDATE, DELETE ON "allowance" TO payments_service;
