import { describe, expect, test } from 'vitest'
import { formatInstant } from '../../src/dashboard/format.ts'
import { fr as developers } from '../../src/dashboard/developers/fr.ts'
import { fr as team } from '../../src/dashboard/team/fr.ts'
import { fr } from '../../src/dashboard/words/fr.ts'
import { scenarios } from '../../src/simulator/scenarios.ts'
import { mutations } from '../kit/audited/operations.ts'

describe('the words of the dashboard', () => {
  test('French has no space before a sign at which a line could break', () => {
    expect(fr.sandbox).toBe('Bac à sable\u00a0: l’argent n’est pas réel.')
    expect(fr.signIn.forgotten).toBe('Mot de passe oublié\u202f?')
    expect(fr.payments.forget('matin')).toBe('Oublier «\u00a0matin\u00a0»')
    expect(fr.home.firstStepsSandbox[1]).toBe('Ou lancez «\u00a0npm run demo\u00a0» dans un autre terminal.')
  })

  test('every change that the log can hold has words', () => {
    const written = Object.entries(mutations).flatMap(([name, row]) => ('exempt' in row ? [] : [name]))
    expect(written.length).toBeGreaterThan(40)
    expect(Object.keys(team.operations)).toEqual(expect.arrayContaining(written))
  })

  test('a wait is named in seconds, and a long one in minutes', () => {
    expect([fr.waitSeconds(30), fr.waitSeconds(3_541)]).toEqual([
      'Trop d’essais. Réessayez dans 30 s.',
      'Trop d’essais. Réessayez dans 60 min.',
    ])
  })

  test('each test number of the sandbox is one that the simulator plays', () => {
    const played = scenarios.filter(({ since }) => since === 'now').map(({ code }) => code)
    const codes = Object.keys(developers.sandbox.outcomes).map((number) => number.slice(2, 4))
    expect(codes.length).toBeGreaterThan(5)
    expect(played).toEqual(expect.arrayContaining(codes))
  })

  test('a date of another year names it', () => {
    expect(formatInstant('2001-12-31T23:59:09Z', 'fr')).toBe('31 déc. 2001, 23:59:09')
  })
})
