import { html } from 'hono/html'
import type { SimulatorCall, Handler, Reply, SimulatorRoute } from '../http.ts'
import { routesOf } from '../http.ts'
import type { SimulatorContext } from '../context.ts'
import { answerCheckout, checkoutPage } from './checkout-page.ts'
import { dashboard } from './dashboard.ts'
import { isOwnForm, languageOf, render } from './layout.ts'
import { answerPrompt, phoneChooser, phonePage } from './phone.ts'
import { words } from './words.ts'

/** Makes the routes of the pages for people: plain forms, no script. */
export function pagesHandler(context: SimulatorContext): Handler {
  const ownForm = (
    call: SimulatorCall,
    take: (context: SimulatorContext, call: SimulatorCall) => Promise<Reply>,
  ) => (isOwnForm(call) ? take(context, call) : empty(call, words[languageOf(call)].crossSite, 403))
  const routes: SimulatorRoute[] = [
    { method: 'GET', pattern: '/', handle: (call) => dashboard(context, call) },
    { method: 'GET', pattern: '/phone', handle: (call) => phoneChooser(context, call) },
    { method: 'GET', pattern: '/phone/:msisdn', handle: (call) => phonePage(context, call) },
    { method: 'POST', pattern: '/phone/:msisdn/:id', handle: (call) => ownForm(call, answerPrompt) },
    { method: 'GET', pattern: '/c/:id', handle: (call) => checkoutPage(context, call) },
    { method: 'POST', pattern: '/c/:id', handle: (call) => ownForm(call, answerCheckout) },
  ]
  return routesOf(routes, (call) => empty(call, words[languageOf(call)].notFound, 404))
}

function empty(call: SimulatorCall, title: string, status: number) {
  return render(call, { title, body: html`<p></p>`, status })
}
