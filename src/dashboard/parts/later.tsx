import { CombinedError } from '@urql/preact'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure, Loading } from './states.tsx'

/** Makes a component of one in a file that is loaded when the component is first shown. */
export function later(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined
  return function Later() {
    const [Shown, show] = useState<{ component: ComponentType | undefined } | null>({ component: loaded })
    const begin = () => {
      show({ component: undefined })
      void load().then(
        (component) => {
          loaded = component
          show({ component })
        },
        () => show(null),
      )
    }
    useEffect(() => {
      if (!loaded) begin()
    }, [])
    if (Shown?.component) return <Shown.component />
    const error = new CombinedError({ networkError: new Error('The screen did not load.') })
    return Shown ? <Loading /> : <Failure error={error} retry={begin} />
  }
}
