-- Whether the service will ask about a request again. The proof of the books makes sure that this is so for
-- the request of each payment that has not ended. False where there is no request with this id.
CREATE OR REPLACE FUNCTION is_request_open(request_id bigint) RETURNS boolean LANGUAGE sql STABLE
  SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM operator_request r WHERE r.id = request_id AND r.next_check_at IS NOT NULL)
$$;
