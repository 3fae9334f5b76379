/**
 * Whether a password is easy to guess. People who must choose twelve characters take common words, their own
 * name or the name of the shop, and add a year, neighbouring keys (`qwerty`) or a punctuation mark. Little is
 * left of such a password once these parts are removed. Choice: rules over a short table of words. The rules
 * hold for every spelling and for our own names, and our packages contain no list of leaked passwords.
 * @param own names that belong to the person who chooses: each name whole, and each word of it
 */
export function isGuessable(password: string, own: readonly string[]): boolean {
  const names = own
    .flatMap((name) => [name, ...name.split(/[^\p{L}\p{N}]+/u)])
    .map(fold)
    .filter((name) => name.length >= nameLengthMin)
  const others = names.length > 0 ? fold(password).replaceAll(anyOf(names), ' ') : fold(password)
  const words = new Set(others.match(common))
  const rest = others
    .replaceAll(common, ' ')
    .replaceAll(year, ' ')
    .replaceAll(/\S{3,}/g, withoutRuns)
    .replaceAll(/(\S{1,8}?)\1+/g, '$1')
    .replaceAll(/\S{3,}/g, withoutRuns)
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
  // Three or more unrelated words give enough combinations.
  return words.size <= wordsMax && Array.from(rest).length <= restMax
}

const nameLengthMin = 3
const wordsMax = 2
const restMax = 3
const year = /(?:19|20)\d\d/g

/** Returns the text in one spelling: in small letters, without accents and without separators. */
function fold(text: string): string {
  return text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[\p{M}\s._-]/gu, '')
}

/**
 * Returns a pattern of all these words, the longest first, also with digits and marks for letters
 * (`p@ssw0rd`).
 */
function anyOf(words: readonly string[]): RegExp {
  const longestFirst = words.toSorted((a, b) => b.length - a.length)
  const patterns = longestFirst.map((word) =>
    Array.from(word, (letter) => lookalikes[letter] ?? letter.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&')).join(
      '',
    ),
  )
  return new RegExp(patterns.join('|'), 'gu')
}

const lookalikes: Readonly<Record<string, string>> = {
  a: '[a@4]',
  e: '[e3€]',
  i: '[i1!]',
  l: '[l1|]',
  o: '[o0]',
  s: '[s5$]',
  t: '[t7+]',
}

/** Removes runs of three or more characters that are neighbours on a keyboard or in an alphabet. */
function withoutRuns(text: string): string {
  let rest = ''
  for (let at = 0; at < text.length; ) {
    let length = 0
    while (at + length < text.length && isRun(text.slice(at, at + length + 1))) length += 1
    if (length < runLengthMin) rest += text.charAt(at)
    at += length < runLengthMin ? 1 : length
  }
  return rest
}

const runLengthMin = 3
const rows = [
  '01234567890123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiopasdfghjklzxcvbnm',
  'azertyuiopqsdfghjklmwxcvbn',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.',
  '1aqw2zsx3edc4rfv5tgb6yhn7uj,8ik;9ol:',
  'qazwsxedcrfvtgbyhnujmikolp',
  'aqwzsxedcrfvtgbyhnujikolpm',
  '1q2w3e4r5t6y7u8i9o0p',
  'q1w2e3r4t5y6u7i8o9p0',
  '1a2z3e4r5t6y7u8i9o0p',
  'a1z2e3r4t5y6u7i8o9p0',
  'a1b2c3d4e5f6g7h8i9j0',
  '1a2b3c4d5e6f7g8h9i0j',
  'asdfghjklqwertyuiop',
  '!@#$%^&*()',
]
const runs = [...rows, ...rows.map((row) => Array.from(row).toReversed().join(''))].join('\n')

function isRun(text: string): boolean {
  return runs.includes(text)
}

/** Common words in French, English and Mali: `mali`, `bamako` and given names are often chosen here. */
const common = anyOf(
  `
  password passwort motdepasse passe passw pass mdp secret admin administrator administrateur root user
  utilisateur welcome bienvenue bonjour bonsoir salut hello login logmein letmein connexion access
  changeme changeit change default temporary temporaire test testing demo guest invite computer ordinateur
  internet google facebook whatsapp iloveyou jetaime loveyou love lovely amour monamour moncoeur bisous
  cherie princess princesse prince angel ange sunshine soleil bonheur liberte forever whatever nothing
  unbelievable superman batman spiderman spongebob pokemon starwars dragon monkey master shadow tigre lion
  cheval chouchou doudou loulou chocolat chocolate cookie summer winter spring autumn printemps automne
  janvier fevrier mars avril juin juillet aout septembre octobre novembre decembre january february march
  april june july august september october november december monday friday sunday lundi vendredi samedi
  dimanche football baseball basketball barcelona realmadrid manchester united liverpool chelsea arsenal
  juventus marseille paris france french michael jordan jennifer jessica charlie alexander jonathan
  elizabeth christian nicolas thomas marie business company entreprise societe boutique magasin commerce
  chez shop store caisse caissier merchant marchand marchands payment payments paiement paiements argent
  money mobile orange moov wave compte account bank banque franc francs dieu allah jesus maryam inchallah
  bismillah famille family maman papa mother father mali malien maliba bamako sikasso segou mopti kayes
  gao tombouctou niger afrique africa abidjan dakar mohamed mohammed mamadou moussa ibrahim ibrahima oumar
  amadou abdoulaye seydou fatoumata aminata mariam aissata awa kadiatou traore coulibaly diarra keita
  toure konate diallo sidibe sangare dembele cisse doumbia camara kone maiga trustno football1 qwerty
  azerty azertyuiop qwertyuiop`
    .trim()
    .split(/\s+/),
)
