import type pg from 'pg'

/** Writes the address of a database from a connection, or of another database on the same server. */
export function databaseUrl(connection: pg.ClientConfig | string, database?: string): string {
  if (typeof connection === 'string') {
    const url = new URL(connection)
    if (database !== undefined) url.pathname = `/${database}`
    return url.href
  }
  const { user = '', password = '', host = '', port = 5432 } = connection
  const [name, secret, place] = [user, String(password), host].map(encodeURIComponent)
  return `postgresql://${name}:${secret}@${place}:${port}/${database ?? connection.database}?sslmode=disable`
}
