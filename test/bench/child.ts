import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** A process of its own that takes part in a run. */
export interface Child<Ready> {
  pid: number
  /** The message that it sent when it was ready. */
  ready: Ready
  /** Sends it a question. @returns its answer */
  ask(question: object): Promise<unknown>
  close(): Promise<void>
}

/**
 * Starts a program of `processes/`, which sends one message when it is ready and one for each that it gets.
 * @param options handed over as JSON
 * @param folder the `processes/` of another checkout
 */
export async function startChild<Ready>(
  name: string,
  options: object,
  folder: string = join(import.meta.dirname, 'processes'),
): Promise<Child<Ready>> {
  const child = fork(join(folder, name), [JSON.stringify(options)])
  const ready = (await nextMessage(child, name)) as Ready
  return {
    pid: child.pid ?? 0,
    ready,
    ask(question) {
      child.send(question)
      return nextMessage(child, name)
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      // It ends itself, and writes its profile where it was asked for one.
      child.disconnect()
      await exit
    },
  }
}

async function nextMessage(child: ChildProcess, name: string): Promise<unknown> {
  const ended = new AbortController()
  const [message] = (await Promise.race([
    once(child, 'message', { signal: ended.signal }),
    once(child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error(`${name} ended by itself.`)
    }),
  ]).finally(() => ended.abort())) as [unknown]
  return message
}

/** The options that this process was started with. */
export function childOptions(): object {
  return JSON.parse(process.argv[2] ?? '{}') as object
}
