import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkWebhookUrl } from '../../../src/resources/webhooks/address.ts'
import { message, names, startReceiver, startSender, startSocket } from '../../kit/webhooks/receivers.ts'

/** Names of an attacker's DNS, and their addresses. */
const hostileNames: Record<string, readonly string[]> = {
  'inner.test': ['127.0.0.1'],
  '127.0.0.1.nip.test': ['127.0.0.1'],
  'six.test': ['::1'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'mixed.test': ['93.184.216.34', '10.0.0.1'],
  'mixed-six.test': ['2606:4700::1111', 'fd00::1'],
  'mixed-last.test': ['93.184.216.34', '93.184.216.35', '127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  'private.test': ['192.168.1.1'],
  'everything.test': ['0.0.0.0'],
  'nat64.test': ['64:ff9b::7f00:1'],
  'garbage.test': ['127.1'],
  'text.test': ['inner'],
}

/** The port of the listener replaces `P` in each. */
const hostile: readonly string[] = [
  // Literals of this machine, in every notation of an address.
  'https://127.0.0.1:P/',
  'https://127.1:P/',
  'https://127.0.1:P/',
  'https://127.255.255.254:P/',
  'https://2130706433:P/',
  'https://017700000001:P/',
  'https://0x7f000001:P/',
  'https://0x7f.1:P/',
  'https://0177.0.0.1:P/',
  'https://0x7f.0.0.0x1:P/',
  'https://127.0.0.1.:P/',
  'https://①②⑦.⓪.⓪.①:P/',
  'https://127。0。0。1:P/',
  'https://１２７.０.０.１:P/',
  'https://%31%32%37.0.0.1:P/',
  'https://0:P/',
  'https://0.0.0.0:P/',
  'https://[::]:P/',
  'https://[::1]:P/',
  'https://[0:0:0:0:0:0:0:1]:P/',
  'https://[::ffff:127.0.0.1]:P/',
  'https://[::ffff:7f00:1]:P/',
  'https://[::ffff:0:127.0.0.1]:P/',
  'https://[::127.0.0.1]:P/',
  'https://[64:ff9b::127.0.0.1]:P/',
  'https://[64:ff9b:1::7f00:1]:P/',
  'https://[2002:7f00:1::]:P/',
  'https://[2001:0:7f00:1::]:P/',
  // Names of this machine.
  'https://localhost:P/',
  'https://localhost.:P/',
  'https://LOCALHOST:P/',
  'https://ⓛocalhost:P/',
  'https://shop.localhost:P/',
  // Addresses within a network, or of no network.
  'https://10.0.0.1:P/',
  'https://172.16.0.1:P/',
  'https://172.31.255.255:P/',
  'https://192.168.0.1:P/',
  'https://100.64.0.1:P/',
  'https://0xa9fea9fe:P/',
  'https://169.254.169.254:P/latest/meta-data/',
  'https://[::ffff:169.254.169.254]:P/',
  'https://[fd00:ec2::254]:P/',
  'https://[fe80::1]:P/',
  'https://[fec0::1]:P/',
  'https://[fc00::1]:P/',
  'https://100.100.100.200:P/',
  'https://168.63.129.16:P/',
  'https://[::ffff:168.63.129.16]:P/',
  'https://192.0.0.192:P/',
  'https://192.0.2.1:P/',
  'https://198.18.0.1:P/',
  'https://198.51.100.1:P/',
  'https://203.0.113.1:P/',
  'https://224.0.0.1:P/',
  'https://240.0.0.1:P/',
  'https://255.255.255.255:P/',
  'https://[ff02::1]:P/',
  'https://[2001:db8::1]:P/',
  'https://[3fff::1]:P/',
  'https://[5f00::1]:P/',
  'https://[100::1]:P/',
  'https://[4000::1]:P/',
  // Other ports and schemes, and confusing notations.
  'http://93.184.216.34/',
  'http://127.0.0.1:P/',
  'https://93.184.216.34:80/',
  'https://93.184.216.34:22/',
  'https://user:password@93.184.216.34/',
  'https://user@93.184.216.34/',
  'https://93.184.216.34@127.0.0.1:P/',
  'https://127.0.0.1:P\\@93.184.216.34/',
  'https://127.0.0.1:P#@93.184.216.34/',
  'https:127.0.0.1:P/',
  '//127.0.0.1:P/',
  'ftp://127.0.0.1:P/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:P/',
  'javascript:alert(1)',
  ...Object.keys(hostileNames).map((name) => `https://${name}:P/`),
]

const refusal = (words: string | RegExp) =>
  expect.objectContaining({
    code: 'INVALID_INPUT',
    detail: { problems: [{ field: 'url', message: expect.stringMatching(words) }] },
  })

test('no internal address is registered, or sent to, in any notation', async () => {
  expect(new Set(hostile).size).toBeGreaterThanOrEqual(60)
  const inner = await startSocket()
  const rules = { mode: 'production', resolve: names(hostileNames).resolve } as const
  const sender = startSender(rules)
  const reached = await Promise.all(
    hostile.map(async (text) => {
      const url = text.replace('P', String(inner.port))
      await expect(checkWebhookUrl(url, rules)).rejects.toEqual(refusal(/./))
      const { isDelivered, statusCode, error, address } = await sender.send(message(url))
      return { url, isDelivered, statusCode, error, address }
    }),
  )
  const isRefused = ({ error, address }: (typeof reached)[number]) =>
    error === 'address_refused' && address === null
  expect(reached.filter((result) => !isRefused(result))).toEqual([])
  expect(inner.connections).toBe(0)
})

test('no special address is allowed in any notation', async () => {
  const inner = (octets: readonly number[]) => Buffer.from(octets).readUInt32BE()
  const ranges = [
    [10, 0, 0, 0, 8],
    [100, 64, 0, 0, 10],
    [127, 0, 0, 0, 8],
    [169, 254, 0, 0, 16],
    [172, 16, 0, 0, 12],
    [192, 168, 0, 0, 16],
    [224, 0, 0, 0, 3],
    [0, 0, 0, 0, 8],
  ].map(([a = 0, b = 0, c = 0, d = 0, bits = 0]) => ({ from: inner([a, b, c, d]), size: 2 ** (32 - bits) }))
  const address = fc
    .tuple(fc.constantFrom(...ranges), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))
    .map(([{ from, size }, ordinal]) => from + Math.floor(ordinal * size))
  const hex = (value: number) => value.toString(16)
  const writing = fc.constantFrom<(ip: number) => string>(
    (ip) => String(ip),
    (ip) => `0x${hex(ip)}`,
    (ip) => `0${ip.toString(8)}`,
    (ip) => `${ip >>> 24}.${ip & 0xffffff}`,
    (ip) => `[::ffff:${hex(ip >>> 16)}:${hex(ip & 0xffff)}]`,
    (ip) => `[64:ff9b::${hex(ip >>> 16)}:${hex(ip & 0xffff)}]`,
    (ip) => `[2002:${hex(ip >>> 16)}:${hex(ip & 0xffff)}::1]`,
    (ip) => `[::${hex(ip >>> 16)}:${hex(ip & 0xffff)}]`,
  )
  await fc.assert(
    fc.asyncProperty(address, writing, async (ip, write) => {
      await expect(checkWebhookUrl(`https://${write(ip)}/`, { mode: 'production' })).rejects.toThrow(
        'url must lead to an address of the public internet.',
      )
    }),
    { numRuns: 300 },
  )
})

describe('a registered address', () => {
  const { resolve } = names({
    'shop.test': ['93.184.216.34', '2606:4700::1111'],
    'xn--caf-dma.test': ['1.1.1.1'],
  })

  test.each([
    ['https://shop.test/hooks?a=1#part', 'https://shop.test/hooks?a=1'],
    ['https://SHOP.test.:8443', 'https://shop.test:8443/'],
    ['https://shop.test:443/', 'https://shop.test/'],
    ['https://café.test/é', 'https://xn--caf-dma.test/%C3%A9'],
    ['https://1.1.1.1:1024/', 'https://1.1.1.1:1024/'],
    [' HTTPS://1.1.1.1/hooks ', 'https://1.1.1.1/hooks'],
    ['https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
  ])('in production %s is kept as %s', async (url, kept) => {
    expect(await checkWebhookUrl(url, { mode: 'production', resolve })).toBe(kept)
  })

  test.each([
    'http://127.0.0.1:3000/',
    'http://localhost:3000/',
    'http://shop.localhost/',
    'http://[::ffff:7f00:1]:3000/',
    'http://[::1]:25/',
    'http://shop.test:22/',
  ])('in a sandbox %s is allowed', async (url) => {
    expect(await checkWebhookUrl(url, { mode: 'sandbox', resolve })).toBe(url)
  })

  test.each([
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fd00:ec2::254]/',
    'http://100.100.100.200/',
    'http://168.63.129.16/',
    'http://0.0.0.0:4010/',
    'http://[::]:4010/',
    'http://user:password@127.0.0.1/',
  ])('in a sandbox %s is refused as well', async (url) => {
    await expect(checkWebhookUrl(url, { mode: 'sandbox' })).rejects.toEqual(refusal(/./))
  })

  test('is refused with a message that names the fault', async () => {
    const check = (url: string) => checkWebhookUrl(url, { mode: 'production', resolve })
    await expect(check('http://shop.test/')).rejects.toEqual(refusal('must begin with https://'))
    await expect(check('https://a:b@shop.test/')).rejects.toEqual(
      refusal('must not contain a user name or a password'),
    )
    await expect(check('https://1.1.1.1\\@127.0.0.1:4010/')).rejects.toEqual(refusal('backslash'))
    await expect(check('https:/shop.test/')).rejects.toEqual(refusal('two slashes'))
    await expect(check('https://shop.test:25/')).rejects.toEqual(refusal('must have port 443, or 1024'))
    await expect(check(`https://shop.test/${'x'.repeat(2_048)}`)).rejects.toEqual(refusal('at most 2048'))
    await expect(check(`https://shop.test/${'é'.repeat(1_000)}`)).rejects.toEqual(refusal('at most 2048'))
    await expect(check('https://shop.test/\n')).rejects.toEqual(refusal('control'))
    await expect(check('shop')).rejects.toEqual(refusal('http or https'))
  })

  test('may have a name that DNS does not know yet; it is checked at the delivery', async () => {
    const url = 'https://shop.invalid/'
    expect(await checkWebhookUrl(url, { mode: 'production' })).toBe(url)
    const sent = await startSender({ mode: 'production' }).send(message(url))
    expect(sent).toMatchObject({ statusCode: null, error: 'dns', address: null })
  })
})

describe('a name that changes its address later', () => {
  test('is refused once it leads inside, though it was registered with an outer address', async () => {
    const inner = await startSocket()
    const answers = [['93.184.216.34'], ['127.0.0.1']]
    const rules = { mode: 'production', resolve: async () => answers.shift() ?? [] } as const
    const url = await checkWebhookUrl(`https://rebound.test:${inner.port}/`, rules)
    expect(await startSender(rules).send(message(url))).toMatchObject({ error: 'address_refused' })
    expect(inner.connections).toBe(0)
  })

  test('is resolved once per connection: the checked address is the one in use', async () => {
    const receiver = await startReceiver((response) => response.end())
    const { asked, resolve } = names({ 'receiver.test': ['127.0.0.1'] })
    const sender = startSender({ resolve })
    for (let nth = 0; nth < 3; nth += 1) {
      const sent = await sender.send(message(`http://receiver.test:${receiver.port}/`))
      expect(sent).toMatchObject({ isDelivered: true, address: '127.0.0.1' })
    }
    expect(asked).toHaveLength(receiver.connections)
    expect(receiver.connections).toBeLessThan(3)
    expect(receiver.arrived.map(({ headers }) => headers.host)[0]).toBe(`receiver.test:${receiver.port}`)
  })
})

test.each([301, 302, 303, 307, 308])(
  'a redirect to inside (%i) is a failure and is not followed',
  async (status) => {
    const inner = await startReceiver((response) => response.end())
    const receiver = await startReceiver((response) =>
      response.writeHead(status, { location: `http://127.0.0.1:${inner.port}/` }).end(),
    )
    const result = await startSender().send(message(`http://127.0.0.1:${receiver.port}/`))
    expect(result).toMatchObject({ isDelivered: false, statusCode: status, error: null })
    expect(inner.connections).toBe(0)
  },
)
