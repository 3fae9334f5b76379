import { ConfigError } from '../config/parse.ts'

/** Explains to a person why the service does not start, and what to do about it. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError) return `The configuration is wrong:\n${error.message}`
  if (isListening(error)) return whyNotListening(error)
  // A plain Error has a message for people. Any other error is a bug: show where it was thrown.
  if (error instanceof Error && error.constructor === Error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** The error of `node:net` for an address on which it cannot listen. */
interface ListenError extends Error {
  code: string
  address?: string
  port?: number
}

function isListening(error: unknown): error is ListenError {
  return (
    error instanceof Error && 'syscall' in error && ['listen', 'getaddrinfo'].includes(String(error.syscall))
  )
}

function whyNotListening({ code, message, address, port = 0 }: ListenError): string {
  const where = `port ${port} of ${address}`
  if (code === 'EADDRINUSE') {
    const next = port < portMax ? port + 1 : port - 1
    return `Another program uses ${where}. End that program, or choose another port: PORT=${next} npm start`
  }
  if (code === 'EACCES')
    return `This account may not listen on ${where}. Choose one above 1023: PORT=4000 npm start`
  return `HOST: this machine cannot listen there (${message}). 127.0.0.1 admits this machine, 0.0.0.0 all.`
}

const portMax = 65_535
