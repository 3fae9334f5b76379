import { resolveNodes } from '@pothos/plugin-relay'
import { type GraphQLSchema, isObjectType } from 'graphql'
import { readGlobalId } from '../shared/ids.ts'
import { builder } from './builder.ts'

// The queries of the relay plugin refuse a whole request for one id that they cannot read, and report an id
// of a type that is no `Node` as a fault of the service. The queries here give null for each such id.

const Node = builder.nodeInterfaceRef()

builder.queryField('node', (t) =>
  t.field({
    type: Node,
    nullable: true,
    scope: 'authenticated',
    description: 'Any object by its global id; null when it does not exist, or the id is none.',
    args: { id: t.arg.id({ required: true, description: 'The global id of the object.' }) },
    resolve: async (_root, { id }, ctx, info) => {
      const [node] = await resolveNodes(builder, ctx, info, [readNodeId(info.schema, id)])
      return node
    },
  }),
)

builder.queryField('nodes', (t) =>
  t.field({
    type: [Node],
    nullable: { list: false, items: true },
    scope: 'authenticated',
    description:
      'Several objects by their global ids, in the same order; null for each that does not exist, or whose ' +
      'id is none.',
    args: { ids: t.arg.idList({ required: true, description: 'The global ids of the objects.' }) },
    resolve: (_root, { ids }, ctx, info) => {
      const read = ids.map((id) => readNodeId(info.schema, id))
      return resolveNodes(builder, ctx, info, read)
    },
  }),
)

/** Reads the global id of a type that `node(id:)` loads; null for any other text. */
function readNodeId(schema: GraphQLSchema, text: string): ReturnType<typeof readGlobalId> {
  const id = readGlobalId(text)
  const type = id && schema.getType(id.typename)
  const isNode = isObjectType(type) && type.getInterfaces().some(({ name }) => name === 'Node')
  return isNode ? id : null
}
