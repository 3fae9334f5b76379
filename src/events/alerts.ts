/** The data of a `security_alert` event; `begin_epoch` writes a further kind, `database_restored`. */
export type SecurityAlertData = WebhookAlert | AccessAlert

interface WebhookAlert {
  /** `webhook_disabled`: attempts at an endpoint failed too often. */
  kind: 'webhook_disabled'
  /** The alert in one sentence. */
  message: string
  webhook_id: number
  url: string
}

interface AccessAlert {
  /**
   * `whitelist_changed`: the addresses that may use the account changed. `ip_blocked`: a valid credential
   * came from an address that is not allowed. `key_regenerated`: an API key has a new pair. `auth_failures`:
   * too many failed attempts to sign in as one member. `role_raised`: a member has more rights than before.
   * `keys_revoked`: API keys ended because the member who saw their secrets was removed or has a lower role.
   * `keys_kept`: API keys of a removed member passed to another member, and the removed member still knows
   * their secrets. `member_joined`: an invitation was accepted. `approvals_on`, `approvals_off`,
   * `approvals_loosened`: these settings changed. `approvals_loosening`: a change that loosens approvals
   * waits for approval. `approval_refused`: a member who is new, or has a new role, tried to approve
   * something.
   */
  kind:
    | ('whitelist_changed' | 'ip_blocked' | 'key_regenerated' | 'auth_failures' | 'role_raised')
    | ('keys_revoked' | 'keys_kept' | 'member_joined' | 'approval_refused')
    | ('approvals_on' | 'approvals_off' | 'approvals_loosened' | 'approvals_loosening')
  /** The alert in one sentence. */
  message: string
  /** The caller's address, if it is known. */
  ip?: string
  /** The member that the alert is about, if any; for `keys_kept`, the new holder. */
  team_member_id?: number
  /** For `approval_refused`, the thing to approve. For `approvals_loosening`, the change that waits. */
  payout_id?: number
  batch_id?: number
  settings_change_id?: number
  /** For `keys_revoked` and `keys_kept`, the API keys. */
  api_key_ids?: number[]
}
