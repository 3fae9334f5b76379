// The server writes these facts into the page: the service may be served below a path of a proxy, whose
// prefix the server does not know.

/** Whether the service moves real money. */
export const mode: 'sandbox' | 'production' = content('mode') === 'production' ? 'production' : 'sandbox'

/**
 * Whether the browser sent no session with its question for this page. It may have one all the same: it sends
 * none after a link on a page of another site.
 */
export const cameWithoutSession = content('session') === 'none'

/** The address of the simulator that plays operators and customers; null outside a sandbox. */
export const simulatorAddress = content('simulator') || null

/** The operators, each with the name by which people know it. */
export const operatorLabels = JSON.parse(decodeURIComponent(content('operators')) || '[]') as readonly [
  operator: string,
  label: string,
][]

/** The address of the dashboard, with a slash at its end. It does not change while the visitor moves on. */
export const folder = new URL(content('folder'), document.baseURI)

/** The address of GraphQL. */
export const graphqlAddress = new URL('../graphql', folder)

/** The path of the dashboard for the router, without a slash at its end. */
export const basePath = folder.pathname.replace(/\/$/, '')

function content(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? ''
}
