import { html } from 'hono/html'
import { wallet } from '../book.ts'
import type { SimulatorCall, Reply } from '../http.ts'
import { param } from '../http.ts'
import type { SimulatedOperation } from '../model.ts'
import { operatorKeys } from '../model.ts'
import { operators } from '../operators.ts'
import type { SimulatorContext } from '../context.ts'
import { money, spacedNumber, timeOfDay, typedNumber } from './format.ts'
import type { Markup } from './layout.ts'
import { inLanguage, languageOf, redirect, render } from './layout.ts'
import type { PhoneLanguage } from './words.ts'
import { words } from './words.ts'

const numbersMax = 50
const promptsMax = 20
const messagesMax = 30
const pinsMax = 3

/** Renders the choice of a telephone: any number, or one with a waiting prompt. */
export function phoneChooser(context: SimulatorContext, call: SimulatorCall): Reply | Promise<Reply> {
  const language = languageOf(call)
  const say = words[language]
  const typed = call.query.get('number')
  const msisdn = typed === null ? null : typedNumber(typed)
  if (msisdn) return redirect(inLanguage(`/phone/${msisdn}`, language))
  const ringing = ringingNumbers(context)
  const body = html`
<form class="card" method="get" action="/phone">
<input type="hidden" name="lang" value="${language}">
<label for="number">${say.yourNumber}</label>
<input id="number" name="number" type="tel" inputmode="tel" autocomplete="off" required
  placeholder="70 09 00 01" value="${typed ?? ''}">
<button>${say.open}</button>
</form>
<h2>${say.waitingNumbers}</h2>
<div class="card">${
    ringing.length === 0
      ? html`<p class="soft">${say.noPrompt}</p>`
      : html`<ul class="rows">${ringing.map(
          ([number, count]) =>
            html`<li><a href="${inLanguage(`/phone/${number}`, language)}">${spacedNumber(number)}</a>
<span>${count} ${say.waiting}</span></li>`,
        )}</ul>`
  }</div>
<p><a class="button plain" href="${inLanguage('/phone', language)}">${say.refresh}</a></p>`
  return render(call, { title: say.phone, body })
}

/** Renders one telephone: its prompts, its messages and the balances of its wallets. */
export function phonePage(context: SimulatorContext, call: SimulatorCall): Promise<Reply> {
  const language = languageOf(call)
  const say = words[language]
  const msisdn = typedNumber(param(call, 'msisdn'))
  if (!msisdn) return render(call, { title: say.notFound, body: html`<p></p>`, status: 404 })
  const newest = context.store.ofNumber(msisdn)
  const waiting = newest
    .filter((row) => row.state === 'pending' && row.kind !== 'reverse')
    .slice(0, promptsMax)
  const decided = newest.filter((row) => row.state !== 'pending').slice(0, messagesMax)
  const body = html`
<h2>${say.requests}</h2>
${waiting.map((row) => prompt(row, language))}
${waiting.length === 0 ? html`<p class="card soft">${say.noRequest}</p>` : ''}
<p><a class="button plain" href="${inLanguage(`/phone/${msisdn}`, language)}">${say.refresh}</a></p>
<h2>${say.messages}</h2>
<div class="card">${
    decided.length === 0
      ? html`<p class="soft">${say.noMessage}</p>`
      : html`<ul class="rows">${decided.map((row) => message(row, language))}</ul>`
  }</div>
<h2>${say.balance}</h2>
${balances(context, msisdn, language)}`
  // A page that reloads by itself would clear a half-typed PIN.
  const refresh = waiting.length === 0 ? { refreshS: 4 } : {}
  return render(call, { title: spacedNumber(msisdn), body, ...refresh })
}

/** Takes a person's answer to a prompt. */
export async function answerPrompt(context: SimulatorContext, call: SimulatorCall): Promise<Reply> {
  const language = languageOf(call)
  const msisdn = param(call, 'msisdn')
  const operation = context.store.operation(param(call, 'id'))
  if (!operation || operation.msisdn !== msisdn || operation.page) {
    return render(call, { title: words[language].notFound, body: html`<p></p>`, status: 404 })
  }
  const form = new URLSearchParams(call.body)
  if (form.get('answer') === 'refuse') context.engine.refuse(operation, 'declined')
  else if (operation.kind === 'disburse') context.engine.confirm(operation)
  else context.engine.enterPin(operation, form.get('pin') ?? '')
  return redirect(inLanguage(`/phone/${msisdn}`, language))
}

function ringingNumbers(context: SimulatorContext): [string, number][] {
  const counts = new Map<string, number>()
  for (const { msisdn, kind } of context.store.pending()) {
    if (msisdn === null || kind === 'reverse') continue
    counts.set(msisdn, (counts.get(msisdn) ?? 0) + 1)
    if (counts.size >= numbersMax) break
  }
  return [...counts]
}

function prompt(operation: SimulatedOperation, language: PhoneLanguage): Markup {
  const say = words[language]
  const { id, kind, operator, amount, description, clientReference, msisdn, expiresAt, pinFailures } =
    operation
  const [question, yes] = kind === 'disburse' ? [say.receive, say.accept] : [say.payTo, say.confirm]
  const what = html`<p class="soft">${operators[operator].name} · ${question}</p>
<p class="sum">${money(amount, language)}</p>
<p>${description || clientReference}</p>
${expiresAt === null ? '' : html`<p class="soft">${say.until} ${timeOfDay(expiresAt, language)}</p>`}`
  if (operation.page) {
    const link = inLanguage(`/c/${id}`, language)
    return html`<section class="card">${what}
<a class="button" href="${link}">${say.openCheckout}</a></section>`
  }
  const wrong =
    pinFailures > 0 ? html`<p class="bad" role="alert">${say.wrongPin} ${pinsMax - pinFailures}</p>` : ''
  const pin = html`<label for="pin-${id}">${say.pin}</label>
<input id="pin-${id}" name="pin" type="password" inputmode="numeric" maxlength="8" autocomplete="off"
  aria-describedby="hint-${id}">
<p class="soft" id="hint-${id}">${say.pinHint}</p>${wrong}`
  return html`<form class="card" method="post" action="${inLanguage(`/phone/${msisdn}/${id}`, language)}">
${what}${kind === 'disburse' ? '' : pin}
<div class="two"><button name="answer" value="confirm">${yes}</button>
<button class="plain" name="answer" value="refuse">${say.refuse}</button></div></form>`
}

function message(operation: SimulatedOperation, language: PhoneLanguage): Markup {
  const say = words[language]
  const { operator, kind, state, amount, reference, refusal, changedAt } = operation
  const said =
    state === 'failed'
      ? `${money(amount, language)} : ${refusal ? say.reasons[refusal] : say.states.failed}`
      : `${say.receipts[kind]} ${money(amount, language)}. ${say.reference} ${reference}.`
  const returned = state === 'reversed' ? html`<span class="bad">${say.states.reversed}</span>` : ''
  return html`<li><span>${said} ${returned}</span>
<span class="soft">${operators[operator].name} · ${timeOfDay(changedAt, language)}</span></li>`
}

function balances(context: SimulatorContext, msisdn: string, language: PhoneLanguage): Markup {
  const wallets = operatorKeys.flatMap((key) => {
    const francs = context.store.book.balance(key, wallet(msisdn))
    return francs === null ? [] : [{ name: operators[key].name, francs }]
  })
  if (wallets.length === 0) return html`<p class="card soft">${words[language].noWallet}</p>`
  return html`<div class="grid">${wallets.map(
    ({ name, francs }) =>
      html`<section class="card"><p class="soft">${name}</p>
<p class="sum">${money(francs, language)}</p></section>`,
  )}</div>`
}
