import { useQuery } from '@urql/preact'
import { issuedKeysQuery, type MemberFragment } from '../operations.ts'

/** The keys that are read. An account has fewer, apart from old ones. */
const keysMax = 100

interface IssuedKeys {
  /** The names of the keys in use that a member received. */
  names: readonly string[]
  /** Whether these are all: false also until they are read. */
  areAll: boolean
}

/** Reads the keys of programs that stop when a member leaves. */
export function useIssuedKeys({ id }: MemberFragment): IssuedKeys {
  const [{ data }] = useQuery({
    query: issuedKeysQuery,
    variables: { first: keysMax },
    requestPolicy: 'cache-and-network',
  })
  const issued = data?.apiKeys?.nodes.filter((key) => key.isActive && key.issuedTo?.id === id) ?? []
  return {
    names: issued.map(({ name }) => name),
    areAll: data?.apiKeys?.pageInfo.hasNextPage === false,
  }
}
