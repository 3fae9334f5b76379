-- CreateTable
CREATE TABLE "audit_letter" (
    "merchant_id" INTEGER NOT NULL,
    "position" BIGINT NOT NULL,
    "day" DATE NOT NULL,

    CONSTRAINT "audit_letter_pkey" PRIMARY KEY ("merchant_id")
);

-- Below: written by hand. What the schema language cannot say.

SELECT wall_in('audit_letter');
GRANT SELECT, INSERT, UPDATE ON "audit_letter" TO payments_service;
