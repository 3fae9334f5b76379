import { styleText } from 'node:util'
import { failureReasons } from '../../operators/failure-reasons.ts'
import { formatXof } from '../../shared/money.ts'
import type { DemoChange } from './client.ts'
import type { Customer } from './customers.ts'

/** The output of the demonstration: lines, and on a terminal a progress line that stays below them. */
export interface Screen {
  say(line?: string): void
  progress(done: number, all: number): void
  /** Removes the progress line. */
  end(): void
}

const barWidth = 24

export function openScreen(out: NodeJS.WriteStream): Screen {
  const begun = performance.now()
  let bar = ''
  const draw = (line: string) => out.write(`${out.isTTY ? '\r\u001B[K' : ''}${line}`)
  return {
    say: (line = '') => draw(`${line}\n${bar}`),
    progress(done, all) {
      if (!out.isTTY) return
      const filled = Math.round((Math.min(done, all) / all) * barWidth)
      const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
      bar = `  ${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)}  ${done} of ${all} changes, ${seconds} s`
      draw(bar)
    },
    end() {
      if (bar) draw('')
      bar = ''
    },
  }
}

const colours = { success: 'green', failed: 'red', expired: 'yellow' } as const

/**
 * Writes a change as one line; at its end the reason in French, or for a new payment the customer's
 * behaviour.
 */
export function changeLine(change: DemoChange, customer: Customer): string {
  const colour = Object.entries(colours).find(([status]) => status === change.status)?.[1] ?? 'cyan'
  const words = [
    styleText('dim', change.occurredAt.slice(0, 19).replace('T', ' ')),
    String(change.sequence).padStart(3),
    customer.phone.replace(/(..)(?=.)/g, '$1 '),
    change.paymentMethod,
    formatXof(change.amount).padStart(15),
    styleText(colour, change.status.padEnd(8)),
    frenchOf(change) || styleText('dim', change.status === 'pending' ? customer.does : ''),
  ]
  return `  ${words.join('  ')}`.trimEnd()
}

function frenchOf({ status, late, failureReason }: DemoChange): string {
  if (late) return 'Payé après expiration : crédité une seule fois.'
  if (status === 'expired') return failureReasons.PAYER_TIMEOUT.messageFr
  const known = Object.entries(failureReasons).find(([reason]) => reason === failureReason)
  return known?.[1].messageFr ?? failureReason ?? ''
}
