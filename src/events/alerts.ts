/** What the log keeps of an alert. */
export type SecurityAlertData = WebhookAlert | AccessAlert

interface WebhookAlert {
  /** `webhook_disabled`: attempts at an endpoint failed too often. */
  kind: 'webhook_disabled'
  /** One sentence. */
  message: string
  webhook_id: number
  url: string
}

interface AccessAlert {
  /**
   * `whitelist_changed`: the addresses that may use the account are others now. `ip_blocked`: a valid
   * credential came from none of them. `key_regenerated`: an API key has a new pair. `auth_failures`: signing
   * in as one member failed too often. `role_raised`: a member may do more than before. `keys_revoked`: API
   * keys ended because the member who was shown them was removed or has a lower role. `keys_kept`: API keys
   * of a removed member passed to another member, and the removed one still knows their secrets.
   * `member_joined`: an invitation was accepted. `approvals_on`, `approvals_off`, `approvals_loosened`: these
   * settings changed. `approvals_loosening`: a change that loosens them waits for people.
   * `approval_refused`: a member who is new, or has a new role, tried to approve something.
   */
  kind:
    | ('whitelist_changed' | 'ip_blocked' | 'key_regenerated' | 'auth_failures' | 'role_raised')
    | ('keys_revoked' | 'keys_kept' | 'member_joined' | 'approval_refused')
    | ('approvals_on' | 'approvals_off' | 'approvals_loosened' | 'approvals_loosening')
  /** One sentence. */
  message: string
  /** Where it came from, where that is known. */
  ip?: string
  /** Which member, where it is about one. Of `keys_kept`: the new holder. */
  team_member_id?: number
  /** Of `approval_refused`: what was to be approved. Of `approvals_loosening`: the change that waits. */
  payout_id?: number
  batch_id?: number
  settings_change_id?: number
  /** Of `keys_revoked` and `keys_kept`: which API keys. */
  api_key_ids?: number[]
}
