import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

/** A mail server on a port of its own (RFC 5321, as far as a client needs it). */
export interface MailServer {
  url: string
  /** The accepted mails as they came. */
  mails: { from: string; to: string; data: string }[]
  /** How many of the next mails it rejects for now. */
  turnAway: number
  close(): Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    void speak(socket, mail)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const mail: MailServer = {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mails: [],
    turnAway: 0,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return mail
}

async function speak(socket: Socket, mail: MailServer): Promise<void> {
  const say = (line: string) => socket.write(`${line}\r\n`)
  let envelope = { from: '', to: '' }
  let data: string[] | null = null
  say('220 mail.test')
  for await (const line of createInterface({ input: socket, crlfDelay: Infinity })) {
    if (data !== null) {
      if (line !== '.') data.push(line.replace(/^\.\./, '.'))
      else {
        mail.mails.push({ ...envelope, data: data.join('\r\n') })
        data = null
        say('250 taken')
      }
      continue
    }
    const [, command = '', rest = ''] = /^(\w+) ?(.*)$/.exec(line) ?? []
    const address = /<(.*?)>/.exec(rest)?.[1] ?? ''
    switch (command.toUpperCase()) {
      case 'MAIL':
        envelope = { from: address, to: '' }
        say('250 go on')
        break
      case 'RCPT':
        if (mail.turnAway > 0) {
          mail.turnAway -= 1
          say('451 not now')
          break
        }
        envelope.to = address
        say('250 go on')
        break
      case 'DATA':
        data = []
        say('354 speak')
        break
      case 'QUIT':
        say('221 bye')
        socket.end()
        return
      default:
        say('250 mail.test')
    }
  }
}
