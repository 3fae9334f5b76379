import { namedMembersQuery } from '../operations.ts'
import { useSteadyQuery } from '../steady-query.ts'

/** A member that the log names. The member may have left the team since. */
interface NamedMember {
  name: string
  isInTeam: boolean
}

/** Members by what the log calls them: `member:5`. */
export type NamedMembers = ReadonlyMap<string, NamedMember>

/** Reads members by what the log calls them. Other texts are left out. */
export function useNamedMembers(references: readonly string[]): NamedMembers {
  const found = references.flatMap((reference) => /^member:(\d+)$/.exec(reference)?.[1] ?? [])
  const ids = [...new Set(found)].toSorted().map((id) => btoa(`TeamMember:${id}`))
  const { data } = useSteadyQuery(namedMembersQuery, { ids })
  const members = (data?.nodes ?? []).flatMap((node) => (node && 'databaseId' in node ? [node] : []))
  return new Map(
    members.map(({ databaseId, name, status }) => [
      `member:${databaseId}`,
      { name, isInTeam: status !== 'REMOVED' },
    ]),
  )
}
