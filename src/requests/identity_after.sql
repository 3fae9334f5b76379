-- Derives an identity from another identity and a number. The same input gives the same result, also in
-- another copy of the database. The result has the form of a random UUID (version 4), because operators
-- accept no other form.
CREATE OR REPLACE FUNCTION identity_after(identity uuid, step int) RETURNS uuid
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (substr(h, 1, 12) || '4' || substr(h, 14, 3) || substr('89ab',
    1 + (('x' || substr(h, 17, 1))::bit(4)::int & 3), 1)
    || substr(h, 18, 15))::uuid
  FROM encode(sha256(uuid_send(identity) || int4send(step)), 'hex') AS h
$$;
