import { type DocumentInput, useClient } from '@urql/preact'
import { useState } from 'preact/hooks'
import { useWords } from './language.ts'
import {
  type ApprovalsQuery,
  approveBatchMutation,
  approveDepositMutation,
  approvePayoutMutation,
  approveSettingsChangeMutation,
  rejectBatchMutation,
  rejectDepositMutation,
  rejectPayoutMutation,
  rejectSettingsChangeMutation,
  type WaitingApprovalFragment,
} from './operations.ts'
import { problemText, refusalOf } from './refusals.ts'

/** A request that waits for an approval. */
export type Waiting = NonNullable<ApprovalsQuery['approvalsWaiting']>['nodes'][number]

type Obstacle = WaitingApprovalFragment['cannotApproveBecause']

type DecisionMutation<Variables> = DocumentInput<Record<string, object | null>, Variables>

/** A request after a decision that counts. */
interface Decided {
  approval?: Pick<WaitingApprovalFragment, 'status'>
}

interface Mutations {
  approve: DecisionMutation<{ id: string; digest: string }>
  reject: DecisionMutation<{ id: string; reason: string }>
}

const mutations = {
  Payout: { approve: approvePayoutMutation, reject: rejectPayoutMutation },
  Batch: { approve: approveBatchMutation, reject: rejectBatchMutation },
  DepositApproval: { approve: approveDepositMutation, reject: rejectDepositMutation },
  SettingsChange: { approve: approveSettingsChangeMutation, reject: rejectSettingsChangeMutation },
} as unknown as Record<Waiting['__typename'], Mutations>

/**
 * Gives a person the decision about a request: over what the person was shown, and nothing else. The service
 * counts one decision of a person, so a decision whose answer was lost can be sent again.
 */
export function useDecision({ __typename, id, approval }: Waiting) {
  const client = useClient()
  const words = useWords()
  const [problem, setProblem] = useState<{ text: string; before: Obstacle }>()
  const [isSending, setSending] = useState(false)

  /** Sends a decision. @returns the request, if the decision counts */
  async function decide<Variables extends object>(
    mutation: DecisionMutation<Variables>,
    variables: Variables,
  ): Promise<Decided | null> {
    setSending(true)
    setProblem(undefined)
    const { data, error } = await client.mutation(mutation, variables).toPromise()
    setSending(false)
    const [result] = Object.values(data ?? {})
    const { approvals } = words
    const changed = __typename === 'SettingsChange' ? approvals.changedRules : approvals.changed
    const isOver = refusalOf(result)?.code === 'STATE_CONFLICT'
    const text = isOver ? changed : problemText(error, result, words)
    setProblem(text === undefined ? undefined : { text, before: approval.cannotApproveBecause })
    return text === undefined ? (result as Decided) : null
  }

  return {
    // The request may say better by now whether the decision counted, as after an answer that was lost.
    problem: problem?.before === approval.cannotApproveBecause ? problem?.text : undefined,
    isSending,
    approve: () => decide(mutations[__typename].approve, { id, digest: approval.digest ?? '' }),
    reject: (reason: string) => decide(mutations[__typename].reject, { id, reason }),
  }
}

/** Whether a person may reject a request: also where the person may not approve it. */
export function mayReject({ __typename, approval: { cannotApproveBecause } }: Waiting): boolean {
  switch (cannotApproveBecause) {
    case null:
    case 'DECIDED':
    case 'NEW_MEMBER':
    case 'UNKNOWN_MAKER':
      return true
    case 'MAKER':
      // The person who requested other rules may withdraw them.
      return __typename === 'SettingsChange'
    case 'NO_PERSON':
    case 'NOT_WAITING':
    case 'ROLE':
      return false
  }
}
