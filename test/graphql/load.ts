import { setTimeout as sleep } from 'node:timers/promises'
import { type GraphqlAttack, attacks, send } from './attacks.ts'

// A program that plays many clients: each sends the attacks in turn, or an honest request as often, until its
// input ends. It prints `warm`, and at the end its counts.

const { url, kind, token, clients, pauseMs } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string
  kind: 'attackers' | 'neighbours'
  token: string
  clients: number
  pauseMs: number
}
const honest: GraphqlAttack = {
  name: 'honest',
  request: { body: JSON.stringify({ query: '{ batches(first: 20) { nodes { id } } }' }) },
  refusal: null,
  isSignedIn: true,
}
const choice = kind === 'attackers' ? attacks : [honest]

let isStopped = false
let sent = 0
let failed = 0
process.stdin.resume().once('end', () => {
  isStopped = true
})

async function play(client: number): Promise<void> {
  for (let round = client * 3; !isStopped; round += 1) {
    const attack = choice[round % choice.length] as GraphqlAttack
    const answer = await send(url, attack, token).catch(() => null)
    sent += 1
    if (answer?.status !== (attack.refusal?.status ?? 200)) failed += 1
    if (sent === clients) process.stdout.write('warm\n')
    await sleep(pauseMs)
  }
}

await Promise.all(Array.from({ length: clients }, (_, client) => play(client)))
process.stdout.write(JSON.stringify({ sent, failed }))
