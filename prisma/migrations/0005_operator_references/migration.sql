-- One reference of an operator proves one of its payments. A table of its own, because an index of the
-- requests would change with their evidence. Where earlier evidence names a reference again, the first
-- payment keeps it.
CREATE TABLE "operator_reference" (
  "provider" provider NOT NULL,
  "reference" text NOT NULL,
  "request_id" bigint NOT NULL,
  CONSTRAINT "operator_reference_pkey" PRIMARY KEY (reference, provider)
);
INSERT INTO "operator_reference" (provider, reference, request_id)
SELECT r.provider, r.evidence->>'operatorRef', min(r.id) FROM "operator_request" r
WHERE r.evidence->>'operatorRef' IS NOT NULL GROUP BY 1, 2;
