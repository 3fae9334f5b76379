import { html } from 'hono/html'
import type { SimulatorCall, Reply } from '../http.ts'
import { param } from '../http.ts'
import type { SimulatedOperation } from '../model.ts'
import type { SimulatorContext } from '../context.ts'
import { money, spacedNumber, timeOfDay, typedNumber } from './format.ts'
import type { Markup } from './layout.ts'
import { inLanguage, languageOf, redirect, render } from './layout.ts'
import type { PhoneLanguage } from './words.ts'
import { words } from './words.ts'

const pinsMax = 3

/** Renders the hosted page of a checkout session, where a payer confirms or cancels. */
export function checkoutPage(context: SimulatorContext, call: SimulatorCall): Promise<Reply> {
  const session = sessionOf(context, call)
  return session ? show(call, session) : noSession(call)
}

/** Takes a payer's answer; a failed payment leaves the page open for another try. */
export async function answerCheckout(context: SimulatorContext, call: SimulatorCall): Promise<Reply> {
  const session = sessionOf(context, call)
  if (!session?.page) return noSession(call)
  const language = languageOf(call)
  const { successUrl, errorUrl, onlyPayer } = session.page
  if (session.state !== 'pending') return show(call, session)
  const form = new URLSearchParams(call.body)
  if (form.get('answer') === 'cancel') {
    context.engine.refuse(session, 'declined')
    return redirect(new URL(errorUrl).href)
  }
  const payer = typedNumber(form.get('phone') ?? '')
  if (!payer || (onlyPayer !== null && payer !== onlyPayer)) {
    return show(call, session, words[language].payerMismatch)
  }
  const after = context.engine.payCheckout(session, payer, form.get('pin') ?? '')
  return redirect(after.state === 'completed' ? new URL(successUrl).href : inLanguage(call.path, language))
}

function show(call: SimulatorCall, session: SimulatedOperation, problem = ''): Promise<Reply> {
  const language = languageOf(call)
  const say = words[language]
  const sum = html`<p class="sum">${money(session.amount, language)}</p>
<p class="soft">${session.clientReference}</p>`
  if (session.state === 'pending') {
    const acted = session.due !== null && session.due.act !== 'expire'
    const form = acted ? html`<p>${say.answersItself}</p>` : payForm(session, language, problem)
    const status = problem === '' ? {} : { status: 422 }
    const body = html`<section class="card">${sum}${until(session, language)}${form}</section>`
    return render(call, {
      title: say.amountToPay,
      body,
      alone: true,
      ...(acted ? { refreshS: 2 } : {}),
      ...status,
    })
  }
  const paid = session.state !== 'failed'
  const why = session.refusal ? html`<p class="bad">${say.reasons[session.refusal]}</p>` : ''
  const back = paid ? session.page?.successUrl : session.page?.errorUrl
  const end = paid
    ? html`<p>${say.reference} <code>${session.reference}</code></p>`
    : html`${why}<p class="soft">${say.expired}</p>`
  const body = html`<section class="card">${sum}${end}
<a class="button" href="${back ?? '/'}" rel="noreferrer">${say.back}</a></section>`
  return render(call, { title: paid ? say.paid : say.notPaid, body, alone: true })
}

function payForm(session: SimulatedOperation, language: PhoneLanguage, problem: string): Markup {
  const say = words[language]
  const { pinFailures, lastError } = session
  const onlyPayer = session.page?.onlyPayer ?? null
  const wrong = pinFailures > 0 ? `${say.wrongPin} ${pinsMax - pinFailures}` : ''
  const failed = lastError ? `${say.notPaid} : ${say.reasons[lastError]}` : ''
  const alert = problem || wrong || failed
  const phone = onlyPayer
    ? html`<input id="phone" name="phone" type="tel" readonly value="${spacedNumber(onlyPayer)}">`
    : html`<input id="phone" name="phone" type="tel" autocomplete="tel" placeholder="76 00 00 01">`
  return html`<form method="post" action="${inLanguage(`/c/${session.id}`, language)}">
${alert ? html`<p class="bad" role="alert">${alert}</p>` : ''}
<label for="phone">${say.yourNumber}</label>
${phone}
<label for="pin">${say.pin}</label>
<input id="pin" name="pin" type="password" inputmode="numeric" maxlength="8" autocomplete="off"
  aria-describedby="hint">
<p class="soft" id="hint">${say.pinHint}</p>
<div class="two"><button name="answer" value="confirm">${say.confirm}</button>
<button class="plain" name="answer" value="cancel">${say.cancel}</button></div>
</form>`
}

function until(session: SimulatedOperation, language: PhoneLanguage): Markup | string {
  if (session.expiresAt === null) return ''
  return html`<p class="soft">${words[language].until} ${timeOfDay(session.expiresAt, language)}</p>`
}

function sessionOf(context: SimulatorContext, call: SimulatorCall): SimulatedOperation | undefined {
  const session = context.store.operation(param(call, 'id'))
  return session?.page ? session : undefined
}

function noSession(call: SimulatorCall): Promise<Reply> {
  return render(call, {
    title: words[languageOf(call)].notFound,
    body: html`<p></p>`,
    status: 404,
    alone: true,
  })
}
