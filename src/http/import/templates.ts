import type { GraphQLSchema } from 'graphql'
import type { Services } from '../../context.ts'
import { accessRuleOf } from '../../graphql/access-plan.ts'
import { openDownloads } from '../downloads.ts'
import type { Door } from '../rest/handler.ts'
import { csvTemplate, type TemplateWish, xlsxTemplate } from './template.ts'

const kinds: Readonly<Record<string, { contentType: string; make: (wish: TemplateWish) => Buffer }>> = {
  csv: { contentType: 'text/csv; charset=utf-8; header=present', make: csvTemplate },
  xlsx: {
    contentType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    make: xlsxTemplate,
  },
}

/** Tables to fill in and send to `POST /bulk/batches/import`, in the reader's language. */
export function openTemplates(services: Services, schema: GraphQLSchema): Door {
  const rule = accessRuleOf(schema, 'BatchRecipient')
  const isSandbox = services.config.mode === 'sandbox'
  return openDownloads(services, (path) => {
    const [, extension = ''] = /^\/bulk\/batches\/template\.(csv|xlsx)$/.exec(path) ?? []
    const kind = kinds[extension]
    if (!kind) return null
    return {
      fileName: `template.${extension}`,
      contentType: kind.contentType,
      route: 'Template of recipients',
      rule,
      send: async ({ language }, { response, begin }) => {
        if (begin()) response.end(kind.make({ language, isSandbox }))
      },
    }
  })
}
