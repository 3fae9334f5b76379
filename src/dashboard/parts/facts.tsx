import type { ComponentChildren } from 'preact'

/** The name and the value of a fact; it is left out where it has no value. */
export type Fact = readonly [name: string, value: ComponentChildren]

/** A list of facts, each under its name. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
