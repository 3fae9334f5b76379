import { expect, test } from 'vitest'
import { isGuessable } from '../../src/identity/members/guessable-passwords.ts'

const shopWords = ['Awa Diabaté', 'awa.diabate@chez-awa.ml', 'Chez Awa & Filles']

test.each([
  '123456789012',
  '1234567890123456',
  '000000000000',
  '111111111111',
  '123123123123',
  '112233445566',
  '121212121212',
  '987654321098',
  'password1234',
  'Password123!',
  'passwordpassword',
  'P@ssw0rd2024',
  'p4$$w0rd!!!!',
  'motdepasse2024',
  'Mot de passe 1',
  'mot-de-passe-123',
  'qwertyuiop12',
  'qwertyuiopasdf',
  'azertyuiop123',
  'azertyazerty',
  '1q2w3e4r5t6y',
  '1qaz2wsx3edc',
  'zaq12wsxcde3',
  'abcdefghijkl',
  'a1b2c3d4e5f6',
  'iloveyou1234',
  'iloveyouforever',
  'jetaimejetaime',
  'unbelievable',
  'administrator',
  'administrateur1',
  'changeme12345',
  'welcome2bamako',
  'Bamako2024!!',
  'MaliMaliMali',
  'Printemps2025',
  'Coulibaly1987',
  'orangemoney1',
  'aaaaaaaaaaaa',
  'abababababab',
])('the password %j is tried first', (password) => {
  expect(isGuessable(password, [])).toBe(true)
})

test.each([
  'awa diabate 2024',
  'Diabaté-Awa-123',
  'awa.diabate@chez-awa.ml',
  'awadiabate1990',
  'ChezAwaFilles!',
  'chez awa & filles',
  'Filles123456',
  'D1@b4té12345',
])('the password %j is guessed by a person who knows the shop', (password) => {
  expect(isGuessable(password, shopWords)).toBe(true)
})

test.each([
  'le soleil de Bamako',
  'le fleuve Niger est long',
  'une autre nuit à Mopti',
  'correct horse battery staple',
  'soleil bonjour boutique dragon',
  'kR7#vQ2m!x9Z',
  'ʻn ka taa sugu la',
  '8362947105836',
  'ߒߞߏ ߛߓߍߛߎ߲ ߢߌߡߊ',
])('the password %j is hard to guess', (password) => {
  expect(isGuessable(password, shopWords)).toBe(false)
})

test('the longest password is checked to its end', () => {
  for (const piece of ['a', 'ab', '1q', 'pass', 'p@', '((', 'abc1']) {
    expect(isGuessable(piece.repeat(64).slice(0, 128), ['(.*)+$', 'a'.repeat(200), '[x'])).toBe(true)
  }
})
