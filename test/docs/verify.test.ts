import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newWebhookSecret } from '../../src/resources/webhooks/sign.ts'
import { cannotRun, guideCode, type MerchantLanguage, languages } from '../kit/languages.ts'
import { type Arrived, deliver } from '../kit/webhooks/receivers.ts'

/** The lines of the guide become a program: cases come in on standard input, verdicts go out. */
const programs: readonly Program[] = [
  {
    name: 'node',
    fence: 'js',
    isMissing: false,
    run: [process.execPath, 'verify.mjs'],
    around: (lines: string) => `${lines}
import { readFileSync } from 'node:fs'
const told = JSON.parse(readFileSync(0)).map(({ body, headers, secret }) => {
  try { return verify(Buffer.from(body, 'base64'), headers, secret).id } catch (error) { return false }
})
console.log(JSON.stringify(told))`,
  },
  ...languages.map((language) => ({
    name: language.name,
    fence: language.fence,
    isMissing: cannotRun(language),
    run: [language.run[0], language.verifier] as const,
    around: (lines: string) => language.around(`${lines}${mains[language.name]}`),
  })),
]

interface Program {
  name: string
  fence: string
  isMissing: boolean
  /** The command, and the name of the file. */
  run: readonly [program: string, file: string]
  around: (lines: string) => string
}

const mains: Readonly<Record<MerchantLanguage['name'], string>> = {
  Python: `
import sys
def told(case):
    try:
        return verify(base64.b64decode(case['body']), case['headers'], case['secret'])['id']
    except (ValueError, KeyError):
        return False
print(json.dumps([told(case) for case in json.load(sys.stdin)]))`,
  PHP: `
$told = array_map(function ($case) {
    try { return verify(base64_decode($case['body']), $case['headers'], $case['secret'])['id']; }
    catch (Exception $e) { return false; }
}, json_decode(file_get_contents('php://stdin'), true));
echo json_encode($told);`,
  // The JDK has no JSON: a case is an object of names and texts, and begins with its body.
  Java: String.raw`
public static void main(String[] args) throws Exception {
    var verdicts = new StringJoiner(",", "[", "]");
    var pairs = java.util.regex.Pattern.compile("\"([^\"]+)\":\"([^\"]*)\"");
    for (String text : new String(System.in.readAllBytes(), UTF_8).split("(?=\\{\"body\")")) {
        var all = new HashMap<String, String>();
        pairs.matcher(text).results().forEach(pair -> all.put(pair.group(1), pair.group(2)));
        if (all.isEmpty()) continue;
        try {
            String event = verify(Base64.getDecoder().decode(all.get("body")), all::get, all.get("secret"));
            verdicts.add(event.substring(6, event.indexOf(',')));
        } catch (SignatureException | NumberFormatException refused) {
            verdicts.add("false");
        }
    }
    System.out.println(verdicts);
}`,
}

/** Deliveries as a socket brought them, each with the secret to check it with and the right verdict. */
async function makeCases() {
  const [secret, next, other] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()]
  const body = Buffer.from(
    '{"id":"evt_7","event":"payment_received", "data":{"reference":"café","amount":5e3}}',
  )
  const plain = await deliver(body, { secret })
  const rotating = await deliver(body, { secret: next, previous: secret })
  const stale = await deliver(body, { secret }, new Date(Date.now() - 10 * 60_000))
  const early = await deliver(body, { secret }, new Date(Date.now() + 10 * 60_000))
  const without = (name: string): Arrived => {
    const { [name]: _gone, ...headers } = plain.headers
    return { ...plain, headers }
  }
  const having = (headers: Record<string, string>): Arrived => ({
    ...plain,
    headers: { ...plain.headers, ...headers },
  })
  const rows: [Arrived, typeof secret, 'evt_7' | false][] = [
    [plain, secret, 'evt_7'],
    [rotating, secret, 'evt_7'],
    [rotating, next, 'evt_7'],
    [plain, other, false],
    [rotating, other, false],
    [{ ...plain, body: Buffer.from(body.toString().replace('5e3', '5e4')) }, secret, false],
    [{ ...plain, body: Buffer.from(JSON.stringify(JSON.parse(body.toString()))) }, secret, false],
    [stale, secret, false],
    [early, secret, false],
    [having({ 'webhook-id': 'evt_8' }), secret, false],
    [having({ 'webhook-signature': 'v1,' }), secret, false],
    [having({ 'webhook-signature': '' }), secret, false],
    [having({ 'webhook-timestamp': 'now' }), secret, false],
    [without('webhook-signature'), secret, false],
    [without('webhook-timestamp'), secret, false],
    [without('webhook-id'), secret, false],
  ]
  return {
    input: rows.map(([{ body: raw, headers }, held]) => ({
      body: raw.toString('base64'),
      headers,
      secret: held.reveal(),
    })),
    verdicts: rows.map(([, , verdict]) => verdict),
  }
}

describe('the code of the webhook guide accepts the valid deliveries and rejects all others', () => {
  for (const {
    name,
    fence,
    isMissing,
    run: [program, file],
    around,
  } of programs) {
    const lines = guideCode(fence)

    test.skipIf(isMissing)(`the code in ${name}`, async () => {
      expect(lines.split('\n').filter(Boolean).length).toBeLessThanOrEqual(11)
      const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-verify-'))
      onTestFinished(() => rmSync(dir, { recursive: true }))
      writeFileSync(join(dir, file), around(lines))
      const { input, verdicts } = await makeCases()
      const running = promisify(execFile)(program, [join(dir, file)])
      running.child.stdin?.end(JSON.stringify(input))
      expect(JSON.parse((await running).stdout)).toEqual(verdicts)
    })
  }
})
