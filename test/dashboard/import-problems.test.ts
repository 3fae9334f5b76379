import { describe, expect, test } from 'vitest'
import { en } from '../../src/dashboard/payroll/en.ts'
import { fr } from '../../src/dashboard/payroll/fr.ts'
import { problemsByLine } from '../../src/dashboard/payroll/import-problems.ts'

// The problems of a file, as the service writes them, in words for the person who made the file.

const textsOf = (field: string, message: string) =>
  problemsByLine([{ field, message }], fr)
    .flatMap(({ texts }) => texts)
    .join()
    .replaceAll(/\s+/g, ' ')

describe('problems of a file in French', () => {
  test('a text without a letter that shows is missing', () => {
    expect(textsOf('lines[2].name', 'must not be empty (column A, nom)')).toBe('nom : il manque.')
  })

  test.each([
    ['must have at most 200 characters', 'nom de la paie : le texte est trop long.'],
    [
      'must not contain control or hidden characters',
      'nom de la paie : le texte a des caractères invisibles. Écrivez-le de nouveau.',
    ],
    ['must not be empty', 'nom de la paie : il manque.'],
  ])('the name of the payroll is no problem of the file: %s', (message, text) => {
    expect(textsOf('title', message)).toBe(text)
  })

  test('an English colon has no space before it', () => {
    const [line] = problemsByLine([{ field: 'lines[2].name', message: 'is required' }], en)
    expect(line?.texts).toEqual(['name: it is missing.'])
  })

  test('a title of a column may have two lines', () => {
    expect(textsOf('file', 'has a column that was not read: Prime\nmensuelle (column E)')).toBe(
      'La colonne « Prime mensuelle » n’est pas lue.',
    )
    expect(textsOf('file', 'has two columns with the same meaning: montant and Mon\ntant')).toContain(
      'Deux colonnes disent la même chose : « montant » et « Mon tant ».',
    )
  })

  test('a conditional format and a colour have advice of their own', () => {
    expect(
      textsOf('file', 'has a conditional format that may hide, alter or strike out a content: remove it'),
    ).toBe('une mise en forme conditionnelle peut cacher ou barrer un contenu. Supprimez-la.')
    expect(
      textsOf(
        'lines[3].amount',
        'has the colour of its background: choose another colour (column C, montant)',
      ),
    ).toBe('montant : le texte a la couleur de son fond : il ne se voit pas. Changez la couleur.')
  })

  test('a name that is written from right to left leaves the number and the amount beside it', () => {
    const row = { name: 'A\u202eb', account: '7000', amount: '5000' }
    const [line] = problemsByLine([{ field: 'lines[5].name', message: 'is required', row }], fr)
    expect(line?.content).toBe('\u2068A\u202eb\u2069 · \u20687000\u2069 · \u20685000\u2069')
  })
})
