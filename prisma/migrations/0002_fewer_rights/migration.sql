-- Only functions that act as the owner write these tables: the service itself needs to read them.
REVOKE INSERT, UPDATE, DELETE ON "api_key", "audit_email", "mail", "member_secret", "operator_callback",
  "operator_exchange", "rate_limit", "session", "sign_in_address", "sign_in_wait", "signing_key",
  "team_member" FROM payments_service;
REVOKE USAGE ON SEQUENCE "api_key_id_seq", "operator_callback_id_seq", "operator_exchange_id_seq",
  "team_member_id_seq" FROM payments_service;
