-- Returns the state in which a request ends: settled, refused by the operator, or closed by the service. The
-- planner inlines this function into the calling statement.
CREATE OR REPLACE FUNCTION request_end(is_paid boolean, source text) RETURNS operator_request_state
  LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN is_paid THEN 'settled'::operator_request_state
    WHEN source <> 'service' THEN 'refused' ELSE 'closed' END
$$;
