-- The timeline of a payment shows its callbacks.
CREATE INDEX operator_callback_request_id_idx ON "operator_callback" (request_id);
