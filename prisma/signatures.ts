import type pg from 'pg'

/** Reads the signature of each function of the service. */
export async function readSignatures(client: pg.Client | pg.Pool): Promise<string[]> {
  const { rows } = await client.query<{ signature: string }>(
    `SELECT format('%s(%s) %s', p.proname, pg_get_function_identity_arguments(p.oid),
       pg_get_function_result(p.oid)) AS signature
     FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
     ORDER BY p.proname COLLATE "C"`,
  )
  return rows.map(({ signature }) => signature)
}
