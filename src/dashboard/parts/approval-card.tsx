import { useId } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { mayReject, useDecision, type Waiting } from '../decision.ts'
import { formatMoment, formatPhone, formatXof, isolate } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { amountOf, authorOf, nameOf } from '../waiting.ts'
import { BatchRecipients } from './batch-recipients.tsx'
import { Facts } from './facts.tsx'
import { Rejection } from './rejection.tsx'
import { operatorLabel } from '../operator-label.ts'

interface ApprovalCardProps {
  subject: Waiting
  /** Whether the card moved a moment ago: a click may be meant for another card. */
  hasMoved: boolean
  /** Called with the name of the request when the person begins to decide. */
  onTry: (name: string) => void
  /** Called with the outcome in words when the decision counts. */
  onDecided: (outcome: string) => void
  /** Called when a decision was refused or its answer was lost: the request may have changed. */
  onDoubt: () => void
}

/** A request that waits for an approval: all that the approval covers, who asked for it, and the decision. */
export function ApprovalCard({ subject, hasMoved, onTry, onDecided, onDoubt }: ApprovalCardProps) {
  const words = useWords()
  const language = useLanguage()
  const decision = useDecision(subject)
  const { approvals } = words
  const { canApprove, cannotApproveBecause } = subject.approval
  const name = nameOf(subject, words)
  const amount = amountOf(subject, language)
  const heading = useId()
  const isBlocked = decision.isSending || hasMoved
  const approve = async () => {
    onTry(name)
    const decided = await decision.approve()
    if (!decided) return onDoubt()
    const isComplete = decided.approval?.status === 'APPROVED'
    onDecided(isComplete ? approvals.approved(name) : approvals.counted(name))
  }
  const reject = async (reason: string) => {
    if (await decision.reject(reason))
      onDecided(amount === '' ? approvals.changeRejected : approvals.rejected(name))
    else onDoubt()
  }
  return (
    <section className="card request" aria-labelledby={heading}>
      <h2 id={heading}>{name}</h2>
      {amount !== '' && <p className="sum small">{amount}</p>}
      <Covered subject={subject} />
      <Progress subject={subject} />
      {decision.problem && (
        <p className="problem" role="alert">
          {decision.problem}
        </p>
      )}
      {cannotApproveBecause && <p className="soft">{approvals.obstacles[cannotApproveBecause]}</p>}
      {canApprove && (
        <button
          type="button"
          aria-disabled={isBlocked}
          aria-describedby={heading}
          onClick={() => !isBlocked && void approve()}
        >
          {amount === '' ? approvals.approveChange : approvals.approve(amount)}
        </button>
      )}
      {mayReject(subject) && (
        <Rejection
          name={name}
          amount={amount}
          isSending={decision.isSending}
          onOpen={() => onTry(name)}
          onSend={reject}
        />
      )}
    </section>
  )
}

/** All that an approval covers. */
function Covered({ subject }: { subject: Waiting }) {
  switch (subject.__typename) {
    case 'Payout':
      return <PayoutFacts payout={subject} />
    case 'Batch':
      return <BatchFacts batch={subject} />
    case 'DepositApproval':
      return <DepositFacts deposit={subject} />
    case 'SettingsChange':
      return <SettingsFacts change={subject} />
  }
}

type OfType<Name extends Waiting['__typename']> = Extract<Waiting, { __typename: Name }>

function PayoutFacts({ payout }: { payout: OfType<'Payout'> }) {
  const { approvals } = useWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { scheduledAt, destinationPhone, paymentMethod, reference } = payout
  // A day that passed while the request waited is over: the approval itself sends the money.
  const isLater = scheduledAt !== null && Date.parse(scheduledAt) > Date.now()
  const day = isLater ? formatMoment(scheduledAt, language, timeZone) : approvals.now
  return (
    <Facts
      facts={[
        [approvals.number, `${formatPhone(destinationPhone)} · ${operatorLabel(paymentMethod)}`],
        [approvals.day, day],
        [approvals.reference, reference],
      ]}
    />
  )
}

/** The most numbers that a warning names: a batch of a thousand lines may repeat a hundred. */
const duplicatesShownMax = 10

function BatchFacts({ batch }: { batch: OfType<'Batch'> }) {
  const { approvals } = useWords()
  const { duplicates } = batch
  return (
    <>
      {duplicates.length > 0 && (
        <p className="problem">
          {approvals.duplicates(
            duplicates
              .slice(0, duplicatesShownMax)
              .map(({ account }) => formatPhone(account))
              .join(', ') + (duplicates.length > duplicatesShownMax ? '…' : ''),
          )}
        </p>
      )}
      <BatchRecipients key={batch.approval.digest} batchId={batch.id} count={batch.recipientCount} />
    </>
  )
}

function DepositFacts({ deposit: { transaction } }: { deposit: OfType<'DepositApproval'> }) {
  const { approvals, payment } = useWords()
  const { refundOf, paymentMethod, reference, databaseId } = transaction
  return (
    <Facts
      facts={[
        [approvals.operator, operatorLabel(paymentMethod)],
        [approvals.reference, <Link href={`/payments/${databaseId}`}>{reference}</Link>],
        [
          payment.refundOf,
          refundOf && <Link href={`/payments/${refundOf.databaseId}`}>{refundOf.reference}</Link>,
        ],
      ]}
    />
  )
}

function SettingsFacts({ change }: { change: OfType<'SettingsChange'> }) {
  const { approvals } = useWords()
  const language = useLanguage()
  const { payoutsRequireApproval, approvalsCoverDeposits, approvalThreshold, approvalsRequired } = change
  const lines = [
    payoutsRequireApproval !== null && approvals.settings.payouts(payoutsRequireApproval),
    approvalsCoverDeposits !== null && approvals.settings.deposits(approvalsCoverDeposits),
    approvalThreshold !== null && approvals.settings.threshold(formatXof(approvalThreshold, language)),
    approvalsRequired !== null && approvals.settings.required(approvalsRequired),
  ]
  return <ul className="steps">{lines.map((line) => line && <li key={line}>{line}</li>)}</ul>
}

/** The person who requested the approval, those who gave it, and the last moment to give it. */
function Progress({ subject: { approval } }: { subject: Waiting }) {
  const words = useWords()
  const { approvals } = words
  const language = useLanguage()
  const { timeZone } = useMe()
  const { requestedBy, requestedAt, approvedBy, required, expiresAt } = approval
  const given = approvedBy.filter(({ counts }) => counts)
  const author = requestedBy && authorOf(requestedBy, words)
  const names = given.map(({ member }) => isolate(member.name)).join(', ')
  return (
    <Facts
      facts={[
        [
          approvals.requestedBy,
          author && requestedAt && `${author} · ${formatMoment(requestedAt, language, timeZone)}`,
        ],
        [approvals.given, approvals.count(given.length, required) + (names && ` · ${names}`)],
        [approvals.until, expiresAt && formatMoment(expiresAt, language, timeZone)],
      ]}
    />
  )
}
