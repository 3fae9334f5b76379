import { stripVTControlCharacters } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { webhookBody } from '../../src/resources/webhooks/payload.ts'
import { newWebhookSecret, signedHeaders, type SigningSecrets } from '../../src/resources/webhooks/sign.ts'
import { startSender } from '../kit/webhooks/receivers.ts'
import { startCommand } from '../kit/program.ts'

const { PATH = '', HOME = '' } = process.env

function startListener(args: readonly string[]) {
  const listener = startCommand({ environment: { PATH, HOME } }, ['src/terminal/listen.ts', ...args])
  onTestFinished(() => void listener.end('SIGKILL'))
  return listener
}

test('webhooks:listen prints each event that arrives, and the fault of each invalid one', async () => {
  const [secret, other] = [newWebhookSecret(), newWebhookSecret()]
  const listener = startListener(['--port', '0', '--webhook-secret', secret.reveal()])
  const [, url = ''] = /(http:\S+)/.exec(await listener.said(/Listening on http/)) ?? []
  const sender = startSender()
  const send = async (
    position: bigint,
    secrets: SigningSecrets,
    { at = new Date(), alter = '', more = {} } = {},
  ) => {
    const id = `evt_${100n + position}`
    const data = { reference: `order-${position}`, amount: 5_000 }
    const event = { id, type: 'payment_received', data, merchantId: 1, position } as const
    const body = webhookBody({ ...event, occurredAt: new Date() })
    const headers = { ...signedHeaders(event, body, secrets, at), ...more }
    return (await sender.send({ url, headers, body: Buffer.concat([body, Buffer.from(alter)]) })).statusCode
  }
  expect(await send(1n, { secret })).toBe(204)
  expect(await send(1n, { secret })).toBe(204)
  expect(await send(4n, { secret: other, previous: secret })).toBe(204)
  expect(await send(5n, { secret: other })).toBe(401)
  expect(await send(6n, { secret }, { alter: ' ' })).toBe(401)
  expect(await send(7n, { secret }, { at: new Date(Date.now() - 600_000) })).toBe(401)
  expect(await send(8n, { secret }, { more: { 'x-service-signature': '00' } })).toBe(401)
  const unsigned = { url, headers: {}, body: Buffer.from('{"id":"\\u001B[2J"}') }
  expect((await sender.send(unsigned)).statusCode).toBe(401)

  const lines = (await listener.said(/is not signed/)).split('\n').filter((line) => /[✓✗]/.test(line))
  const shown = lines.map((line) =>
    stripVTControlCharacters(line)
      .replace(/\d\d:\d\d:\d\d/, '')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  )
  expect(shown).toEqual([
    '✓ 1 payment_received 5 000 F CFA order-1 evt_101',
    '✓ 1 payment_received 5 000 F CFA order-1 evt_101 again',
    '✓ 4 payment_received 5 000 F CFA order-4 evt_104 missing so far: 2 to 3',
    expect.stringMatching(/^✗ 5 .* evt_105 webhook-signature has another secret/),
    expect.stringMatching(/^✗ 6 .* evt_106 webhook-signature has another secret/),
    expect.stringMatching(/^✗ 7 .* evt_107 is older than five minutes/),
    expect.stringMatching(/^✗ 8 .* evt_108 X-Service-Signature has another secret/),
    '✗ - [2J is not signed',
  ])
  expect(await listener.end('SIGINT')).toBe(0)
})

test('webhooks:listen says in a sentence what is wrong', async () => {
  const cases = [
    [['--webhook-secret', 'secret'], 2, 'begins with whsec_'],
    [['--webhook-secret', 'whsec_a', '--port', 'http'], 2, '--port is a number'],
    [['--url', 'http://127.0.0.1:9'], 1, 'run "npm start" first'],
  ] as const
  const ends = cases.map(async ([args, code, words]) => {
    const listener = startListener(args)
    await expect(listener.said(/Listening/)).rejects.toThrow(words)
    expect(await listener.end('SIGINT')).toBe(code)
  })
  await Promise.all(ends)
})
