import { useState } from 'preact/hooks'
import { useWords } from '../language.ts'
import { SecondFactor } from './second-factor.tsx'
import { Password } from './password.tsx'
import { Sessions } from './sessions.tsx'

/** A person's own way of signing in: the second factor, the password, and the devices. */
export function SecurityScreen() {
  const words = useWords()
  const [changes, setChanges] = useState(0)
  return (
    <>
      <h1>{words.security}</h1>
      <div className="home">
        <div className="stack">
          <SecondFactor />
          <Password onChanged={() => setChanges(changes + 1)} />
        </div>
        {/* A new password ended the other sessions: the list is read anew. */}
        <Sessions key={changes} />
      </div>
    </>
  )
}
