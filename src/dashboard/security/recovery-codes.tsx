import { useEffect, useRef } from 'preact/hooks'
import { useMe } from '../me.ts'
import { useQuestionOnLeaving } from '../parts/leaving.ts'
import { useSecurityWords } from './words.ts'

/** Shows the recovery codes once, also on paper. */
export function RecoveryCodes({ codes, onKept }: { codes: readonly string[]; onKept: () => void }) {
  const { factor: words } = useSecurityWords()
  const { merchantName, email } = useMe()
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => title.current?.focus(), [])
  useQuestionOnLeaving(words.codesLeave)
  return (
    <div className="codes-sheet">
      <h3 ref={title} tabIndex={-1}>
        {words.codes}
      </h3>
      <p>{words.codesLead}</p>
      <p className="paper">{merchantName}</p>
      <p className="paper">{email}</p>
      <ul className="codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <p className="bar">
        <button type="button" className="quiet small" onClick={() => print()}>
          {words.codesPrint}
        </button>
        <button type="button" className="small" onClick={onKept}>
          {words.codesKept}
        </button>
      </p>
    </div>
  )
}
