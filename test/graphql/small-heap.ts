import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buildSchema } from 'graphql'
import { createYoga, type Plugin } from 'graphql-yoga'
import { openAdmission } from '../../src/limits/admission.ts'
import { createRequestLimits } from '../../src/limits/request-limits.ts'
import { readConfig } from '../../src/config/config.ts'
import type { Services } from '../../src/context.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { createLog } from '../../src/telemetry/log.ts'

// A program that serves lists within lists by a bare GraphQL server, or by ours. It prints its address.

const schema = buildSchema(`
  type Query { batches(first: Int): BatchConnection! }
  type BatchConnection { nodes: [Batch!]! }
  type Batch { id: ID!, recipients(first: Int): BatchConnection! }
`)
const list = ({ first = 20 }: { first?: number }) => ({
  nodes: Array.from({ length: first }, (_, id) => ({ id: String(id), recipients: list })),
})

function bare(): RequestListener {
  const executing: Plugin = {
    onExecute: ({ args }) => {
      args.rootValue = { batches: list }
    },
  }
  const yoga = createYoga({ schema, logging: false, plugins: [executing] })
  return (message, response) => void yoga(message, response)
}

function limited(): RequestListener {
  const { batches } = schema.getQueryType()?.getFields() ?? {}
  if (batches) batches.resolve = (_root, args) => list(args as { first?: number })
  const log = createLog('silent')
  const noPool = { query: () => Promise.reject(new Error('no database')) }
  const services = {
    config: { mode: 'production' },
    log,
    access: { isTrustedProxy: () => false },
    admission: openAdmission(10_000, async () => {}),
    requestLimits: createRequestLimits(readConfig({}).pace, { pool: noPool, log }),
  } as unknown as Services
  return createGraphqlHandler({ services, operations: createOperations(schema), isDraining: () => false })
}

const server = createServer(process.argv[2] === 'bare' ? bare() : limited())
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`)
})
