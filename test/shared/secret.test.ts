import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { Secret } from '../../src/shared/secret.ts'

const secret = new Secret('ms_hidden')

test('reveal gives the value', () => {
  expect(secret.reveal()).toBe('ms_hidden')
})

test.each<[string, () => string]>([
  ['joined text', () => ['a', secret].join('')],
  ['String', () => String(secret)],
  ['JSON', () => JSON.stringify({ secret })],
  ['inspect', () => inspect({ deep: { secret } }, { depth: 9, showHidden: true })],
  ['its own keys', () => JSON.stringify([Object.entries(secret), Reflect.ownKeys(secret).map(String)])],
  ['a copy', () => JSON.stringify(Object.assign({}, secret))],
  ['an error', () => new Error('failed', { cause: secret }).stack ?? ''],
])('%s never shows the secret', (_where, print) => {
  expect(print()).not.toContain('hidden')
})
