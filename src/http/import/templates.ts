import type { GraphQLSchema } from 'graphql'
import type { Services } from '../../context.ts'
import { accessRuleOf } from '../../graphql/access-plan.ts'
import { downloadRow } from '../downloads.ts'
import type { RouteRow } from '../request.ts'
import { csvTemplate, type TemplateOptions, xlsxTemplate } from './template.ts'

const kinds: Readonly<Record<string, { contentType: string; make: (options: TemplateOptions) => Buffer }>> = {
  csv: { contentType: 'text/csv; charset=utf-8; header=present', make: csvTemplate },
  xlsx: {
    contentType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    make: xlsxTemplate,
  },
}

/**
 * Makes the rows of the path table for the templates of a list of recipients. A person fills in a template
 * and sends it to `POST /bulk/batches/import`. The templates are in the person's language.
 */
export function templateRows({ config }: Services, schema: GraphQLSchema): RouteRow[] {
  const isSandbox = config.mode === 'sandbox'
  return Object.entries(kinds).map(([extension, { contentType, make }]) =>
    downloadRow(`/bulk/batches/template.${extension}`, {
      fileName: `template.${extension}`,
      contentType,
      route: 'Template of recipients',
      rule: accessRuleOf(schema, 'BatchRecipient'),
      send: async ({ language }, { response, begin }) => {
        if (begin()) response.end(make({ language, isSandbox }))
      },
    }),
  )
}
