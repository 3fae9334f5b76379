import type { MemberRole } from '../operations.ts'

/** Returns the roles that a person of a role may give and take. The service decides again at each request. */
export function managedRoles(role: MemberRole | null): readonly MemberRole[] {
  switch (role) {
    case 'OWNER':
      return ['VIEWER', 'FINANCE', 'ADMIN', 'OWNER']
    case 'ADMIN':
      return ['VIEWER', 'FINANCE', 'ADMIN']
    case 'FINANCE':
    case 'VIEWER':
    case null:
      return []
  }
}
