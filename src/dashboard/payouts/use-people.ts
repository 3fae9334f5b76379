import { CombinedError, type OperationResult, useClient } from '@urql/preact'
import { useEffect, useState } from 'preact/hooks'
import {
  type PayeeFragment,
  type PeopleQuery,
  type PeopleQueryVariables,
  peopleQuery,
} from '../operations.ts'

/** The saved people of one read, which is the most that the service gives. */
const pageSize = 100
/** The most saved people that the list reads: the newest ones. Choice: ten reads. */
export const peopleMax = 1_000

interface People {
  /** The saved people by name; null until they are read. */
  people: readonly PayeeFragment[] | null
  /** Whether there are more than the list reads. */
  isCut: boolean
  error: CombinedError | undefined
}

/** Reads the saved people, so that they are searched while a person types. */
export function usePeople(activeOnly: boolean): People & { again: () => void } {
  const client = useClient()
  const [state, setState] = useState<People>({ people: null, isCut: false, error: undefined })
  const [round, setRound] = useState(0)
  useEffect(() => {
    let hasEnded = false
    const read = async () => {
      const people: PayeeFragment[] = []
      let after: string | null = null
      do {
        const variables: PeopleQueryVariables = {
          first: pageSize,
          filter: { activeOnly },
          ...(after !== null && { after }),
        }
        const { data, error }: OperationResult<PeopleQuery> = await client
          .query(peopleQuery, variables, { requestPolicy: 'network-only' })
          .toPromise()
        if (hasEnded) return
        const page = data?.beneficiaries
        if (!page) {
          const problem = error ?? new CombinedError({ networkError: new Error('empty') })
          return setState((before) => ({ ...before, error: problem }))
        }
        people.push(...page.nodes)
        after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null
      } while (after !== null && people.length < peopleMax)
      const { compare } = new Intl.Collator()
      people.sort((one, other) => compare(one.name, other.name))
      setState({ people, isCut: after !== null, error: undefined })
    }
    void read()
    return () => {
      hasEnded = true
    }
  }, [client, activeOnly, round])
  return { ...state, again: () => setRound(round + 1) }
}

/** Returns the people in whose name or number a text occurs. Capitals, accents and spaces do not matter. */
export function foundPeople(people: readonly PayeeFragment[], search: string): readonly PayeeFragment[] {
  const text = foldedOf(search)
  return people.filter(({ name, account }) => foldedOf(name + account).includes(text))
}

function foldedOf(text: string): string {
  return text
    .normalize('NFD')
    .replaceAll(/[\p{M}\s]/gu, '')
    .toLowerCase()
}
