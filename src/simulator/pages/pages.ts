import { html } from 'hono/html'
import type { Call, Handler, Reply, Route } from '../http.ts'
import { routesOf } from '../http.ts'
import type { World } from '../world.ts'
import { answerCheckout, checkoutPage } from './checkout-page.ts'
import { dashboard } from './dashboard.ts'
import { isOwnForm, languageOf, render } from './layout.ts'
import { answerPrompt, phoneChooser, phonePage } from './phone.ts'
import { words } from './words.ts'

/** The pages that people open; plain forms, no script. */
export function pagesHandler(world: World): Handler {
  const ownForm = (call: Call, take: (world: World, call: Call) => Promise<Reply>) =>
    isOwnForm(call) ? take(world, call) : empty(call, words[languageOf(call)].crossSite, 403)
  const routes: Route[] = [
    { method: 'GET', pattern: '/', handle: (call) => dashboard(world, call) },
    { method: 'GET', pattern: '/phone', handle: (call) => phoneChooser(world, call) },
    { method: 'GET', pattern: '/phone/:msisdn', handle: (call) => phonePage(world, call) },
    { method: 'POST', pattern: '/phone/:msisdn/:id', handle: (call) => ownForm(call, answerPrompt) },
    { method: 'GET', pattern: '/c/:id', handle: (call) => checkoutPage(world, call) },
    { method: 'POST', pattern: '/c/:id', handle: (call) => ownForm(call, answerCheckout) },
  ]
  return routesOf(routes, (call) => empty(call, words[languageOf(call)].notFound, 404))
}

function empty(call: Call, title: string, status: number) {
  return render(call, { title, body: html`<p></p>`, status })
}
