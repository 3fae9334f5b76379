import fc from 'fast-check'
import { seed } from '../seeds.ts'
import { strength } from '../strength.ts'
import type { InputField } from './input-fields.ts'

// Values at the edges of what an input takes, each as the JSON text that a client writes: so a number keeps
// its spelling, and half of a character its escape.

const json = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value))

const family = '👩‍👩‍👧‍👦'
const flag = `🏴${String.fromCodePoint(0xe0067, 0xe0062, 0xe0065, 0xe006e, 0xe0067, 0xe007f)}`
/** The most characters of the texts of the API, each limit and one more. */
const lengths = [34, 64, 100, 200, 255, 1_000]
const longest = lengths.flatMap((length) => ['𝄞'.repeat(length), `${'é'.repeat(length)}é`])

const odd = [
  '',
  ' ',
  ' outer ',
  '\u00a0x\u3000',
  `Riz ${family}`,
  flag,
  `e${'\u0301'.repeat(60)}`,
  'é'.normalize('NFD'),
  'ﬁ Å Ω',
  'مرحبا\u0020بالعالم',
  'a\u200db\u200cc',
  'line\u2028and\u2029paragraph',
  'a\r\nb\nc\td\rf',
  '\u202ereversed\u202c',
  'a\ufeffb',
  '\ufeffa',
  'x\ufffey',
  'x\uffff',
  '\u{1fffe}',
  '\ud800',
  '\udfffa\ud800',
  'a\u0000b',
  '\u007f\u0085',
  '\ue000 private',
  '</script><script>alert(1)</script>',
  '"quoted" \\back\\slash\\',
  "it's; DROP TABLE transaction; --",
  '%',
  '100%_\\%',
  '=1+1',
  '+SUM(A1)',
  '@x',
  "'=kept",
  '\u3164',
  '__proto__',
  'constructor',
  'null',
  'NaN',
  'раураl',
  'ｅ＝１',
  '${7*7}{{7*7}}<%= 7 %>',
  '#frag?a=b&c=d/../e',
  '..',
  'a"b,c;d\te',
]

const codePoint = fc
  .integer({ min: 0, max: 0x10_ff_ff - 0x8_00 })
  .map((n) => String.fromCodePoint(n < 0xd8_00 ? n : n + 0x8_00))
const drawn = fc.sample(
  fc.oneof(
    fc.string({ unit: codePoint, minLength: 1, maxLength: 40 }),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
  ),
  { seed, numRuns: strength(6, 400) },
)

const phones = [
  '70000000',
  '+22370000000',
  '0022370000000',
  '22370000000',
  '+223-70-00-00-00',
  '(+223) 70.00.00.00',
  '+2 2 3 7 0 0 0 0 0 0 0',
  '+223             70 00 00     00',
  '\u202a+223 70 00 00 00\u202c',
  '+223\u201070\u201500\u221200 00',
  `${'\u200b'.repeat(500)}70000000`,
  '٧٠٠٠٠٠٠٠',
  '７０００００００',
  '+22320000000',
  '7000000',
]

const labels = `${`${'a'.repeat(63)}.`.repeat(3)}${'b'.repeat(61)}`
const addresses = [
  'http://127.0.0.1:1/',
  'http://127.0.0.1:65535/hook',
  'http://127.0.0.1:65536/',
  'http://127.0.0.1:0/',
  'http://[::1]:1/',
  'http://[::ffff:127.0.0.1]/',
  'https://[2001:db8::1]:8443/a',
  'https://[fe80::1%25eth0]/',
  'http://0x7f000001/',
  'http://2130706433/',
  `https://${labels}/`,
  'https://xn--caf-dma.example/',
  'https://café.example/é?é=ü#é',
  'https://ドメイン.example/',
  'HTTPS://SHOP.example/A',
  ' https://shop.example/ ',
  'https:/shop.example',
  'https://shop.example\\x',
  'https://u:p@shop.example/',
  'https://@shop.example/',
  'https://shop.example./',
  'https://shop.example/a%00b?c=%00',
  'https://shop.example/a?x=%ff&y=\'"<>',
  'https://shop.example/#frag',
  'https://shop.example/?q=👩‍👩‍👧‍👦',
  `https://shop.example/${'a'.repeat(2_048 - 21)}`,
  `https://shop.example/${'a'.repeat(2_049 - 21)}`,
  `https://shop.example/${'é'.repeat(337)}`,
  'javascript:alert(1)',
  'ftp://shop.example/',
  '//shop.example/',
]

const emails = [
  `${'a'.repeat(64)}@${'b'.repeat(63)}.${'c'.repeat(63)}.example`,
  `${'a'.repeat(65)}@shop.example`,
  "o'hara+x_%=/?^`{|}~@shop.example",
  'A@SHOP.EXAMPLE',
  '"quoted name"@shop.example',
  'awa@[127.0.0.1]',
  'awa@café.example',
  'é@shop.example',
  'awa@shop.example\r\nBcc: x@y.example',
  '=cmd@shop.example',
]

const networks = [
  '::/0',
  '0.0.0.0/0',
  '127.0.0.1',
  '127.0.0.1/32',
  '127.0.0.1/33',
  '::ffff:127.0.0.1',
  '::ffff:127.0.0.1/128',
  '::ffff:0:0/96',
  '::1/128',
  'fe80::1%eth0',
  '127.1',
  '0177.0.0.1',
  '0x7f.0.0.1',
  '127.0.0.1/-1',
  '127.0.0.1/08',
  '2001:DB8:0:0:0:0:0:1/129',
]

const slugs = [
  'abc',
  'ab',
  'a'.repeat(64),
  'a'.repeat(65),
  'a--b',
  '-ab',
  'ab-',
  'A-B',
  'admin',
  'a-1'.repeat(21),
]

const numbers = [
  '0',
  '-0',
  '1',
  '-1',
  '99',
  '100',
  '999',
  '1000',
  '1e3',
  '1000.0',
  '1E+3',
  '1000000',
  '1000001',
  '100000000',
  '100000001',
  '1000000000',
  '1000000001',
  '2147483647',
  '2147483648',
  '1000000000000',
  '9007199254740991',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '1e400',
  '-1e400',
  '0.1',
  '1000.0000000000000001',
  '5e-324',
  '"1000"',
  '"NaN"',
]

const global = (name: string) => Buffer.from(name).toString('base64')
const ids = [
  '0',
  '-1',
  '1e3',
  '2147483647',
  '2147483648',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '9'.repeat(400),
  '٧',
  global('Batch:9223372036854775807'),
  global('Transaction:999999999999999999'),
  global('Int:1'),
  global('__proto__:1'),
  global('constructor:1'),
  global('PaymentLink:01'),
  '\ud800',
  'a\u0000b',
  '__proto__',
  '',
]

/** Texts that a caller proves something with: few of them, because they are never shown. */
const secrets = ['', '\u0000', '\ud800', '𝄞'.repeat(128), 'x'.repeat(9_000), family, 'é', '"\\%']

/** The kinds of values, by the last name of the field. Any other text is a text for people. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  customerPhone: phones,
  destinationPhone: phones,
  account: phones,
  returnUrl: addresses,
  cancelUrl: addresses,
  url: addresses,
  customerEmail: emails,
  email: emails,
  notificationEmail: emails,
  businessPhone: phones,
  ipWhitelist: networks,
  addresses: networks,
  urlSlug: slugs,
}

const proofs = /^(password|current|code|token|digest|apiKey|apiSecret|head|destinationAccount|scopes)$/

/**
 * Returns every so many-th value, from another one on for each field, so that `npm test` tries each value on
 * some fields; `npm run soak` tries each value on all of them.
 */
function share<Value>(values: readonly Value[], { name }: InputField, usual: number): Value[] {
  const every = strength(usual, 1)
  const from = name.length % every
  return values.filter((_value, index) => index % every === from)
}

/** A reference names one payment of a merchant: other kinds of payments get other references. */
const marks: Record<string, string> = { deposit: 'd', refundTransaction: 'r' }
const markOf = ({ name, path }: InputField) =>
  path.at(-1) === 'reference' ? (marks[name.slice(0, name.indexOf('.'))] ?? '') : ''

const long = (length: number, mark: string) => mark + '𝄞'.repeat(length - mark.length)

/** The longest text that a field takes by its description, and the next one; each character has two units. */
function bounds(field: InputField): string[] {
  const { lengthMax } = field
  return lengthMax === null ? [] : [0, 1].map((more) => long(lengthMax + more, markOf(field)))
}

/** Whether a field with a stated length is one of texts for people, which its length alone bounds. */
export function isBounded({ path, scalar, lengthMax }: InputField): boolean {
  const name = path.findLast((part) => part !== '0') ?? ''
  return scalar === 'String' && lengthMax !== null && !proofs.test(name) && !(name in kinds)
}

/** The verdicts on the two texts at the bound of such a field. */
export const boundVerdicts = ['taken', 'refused']

/** Returns the JSON texts to try in a field. */
export function valuesFor(field: InputField): readonly string[] {
  const name = field.path.findLast((part) => part !== '0') ?? ''
  if (field.scalar === 'ID') return json(share(ids, field, 3))
  if (field.scalar !== 'String') return share(numbers, field, 3)
  if (proofs.test(name)) return json(share(secrets, field, 2))
  const own = kinds[name]
  const others = [...share(odd, field, 4), ...share(longest, field, 3), ...share(drawn, field, 3)]
  return own
    ? json([...share(own, field, 2), ...share(odd, field, 8)])
    : json([...bounds(field), ...others.map((text) => text + markOf(field))])
}

/** Texts, numbers and ids for arguments and parameters: each is tried in all of them. */
export const extremeTexts = json([
  ...odd.filter((_text, index) => index % strength(4, 1) === 0),
  '𝄞'.repeat(1_000),
  '9223372036854775808',
  Buffer.from('cursor:1').toString('base64'),
])
export const extremeNumbers = numbers.filter((_number, index) => index % strength(3, 1) === 0)
export const extremeIds = json(ids.filter((_id, index) => index % strength(3, 1) === 0))
