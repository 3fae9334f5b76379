import { describe, expect, test } from 'vitest'
import { formatInstant } from '../../src/dashboard/format.ts'
import { fr } from '../../src/dashboard/words/fr.ts'

describe('the words of the dashboard', () => {
  test('French has no space before a sign at which a line could break', () => {
    expect(fr.sandbox).toBe('Bac à sable\u00a0: l’argent n’est pas réel.')
    expect(fr.signIn.forgotten).toBe('Mot de passe oublié\u202f?')
    expect(fr.payments.forget('matin')).toBe('Oublier «\u00a0matin\u00a0»')
    expect(fr.home.firstStepsSandbox[1]).toBe('Ou lancez «\u00a0npm run demo\u00a0» dans un autre terminal.')
  })

  test('a date of another year names it', () => {
    expect(formatInstant('2001-12-31T23:59:09Z', 'fr')).toBe('31 déc. 2001, 23:59:09')
  })
})
