-- Records when and from where a credential was last used, where the last record is older than `every_ms`. A
-- session that was idle for `idle_ms` is over: a process that still takes it for valid does not revive it.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_last_use(credential int, address text, every_ms int, idle_ms int)
  RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE api_key SET last_used_at = now(), last_used_from = address
  WHERE id = credential AND coalesce(last_used_at < now() - every_ms * interval '1 millisecond', true);
  UPDATE session SET last_used_at = now(), last_used_from = address
  WHERE id = credential AND coalesce(last_used_at < now() - every_ms * interval '1 millisecond', true)
    AND coalesce(last_used_at, created_at) >= now() - idle_ms * interval '1 millisecond'
$$;
