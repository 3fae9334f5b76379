import { html } from 'hono/html'
import { pool } from '../book.ts'
import type { SimulatorCall, Reply } from '../http.ts'
import type { SimulatedOperation } from '../model.ts'
import { operatorKeys } from '../model.ts'
import { operators } from '../operators.ts'
import type { Scenario } from '../scenarios.ts'
import { scenarios } from '../scenarios.ts'
import type { SimulatorContext } from '../context.ts'
import { money, spacedNumber, timeOfDay } from './format.ts'
import type { Markup } from './layout.ts'
import { inLanguage, languageOf, render } from './layout.ts'
import type { PhoneLanguage } from './words.ts'
import { words } from './words.ts'

const shownMax = 20

/** Renders the operators' floats, their newest operations, and the test numbers. */
export function dashboard(context: SimulatorContext, call: SimulatorCall): Promise<Reply> {
  const language = languageOf(call)
  const say = words[language]
  const latest = context.store.recent().slice(0, shownMax)
  const body = html`
<div class="grid">${operatorKeys.map((key) => {
    const float = context.store.book.balance(key, pool) ?? 0n
    return html`<section class="card"><h2>${operators[key].name}</h2>
<p class="soft">${say.float}</p><p class="sum">${money(float, language)}</p></section>`
  })}</div>
<p class="soft">${context.store.pendingCount} ${say.waiting}</p>
<h2>${say.latest}</h2>
<div class="card">${
    latest.length === 0
      ? html`<p class="soft">${say.nothingYet}</p>`
      : html`<ul class="rows">${latest.map((row) => operationRow(row, language))}</ul>`
  }</div>
<h2>${say.testNumbers}</h2>
<p class="soft">${say.testNumbersHint}</p>
<div class="card"><ul class="rows">${scenarios.map((row) => scenarioRow(row, language))}</ul></div>`
  return render(call, { title: say.dashboard, body, refreshS: 10 })
}

function operationRow(operation: SimulatedOperation, language: PhoneLanguage): Markup {
  const say = words[language]
  const { operator, kind, amount, msisdn, reference, state, refusal, changedAt } = operation
  const tone = state === 'completed' ? 'good' : state === 'pending' ? 'soft' : 'bad'
  const number = msisdn
    ? html`<a href="${inLanguage(`/phone/${msisdn}`, language)}">${spacedNumber(msisdn)}</a>`
    : html`<a href="${inLanguage(`/c/${operation.id}`, language)}">${operation.id}</a>`
  return html`<li><span>${operators[operator].name} · ${say.kinds[kind]} · ${number}</span>
<span><strong>${money(amount, language)}</strong></span>
<span class="soft"><code>${reference}</code> · ${timeOfDay(changedAt, language)}</span>
<span class="${tone}">${say.states[state]}${refusal ? ` : ${say.reasons[refusal]}` : ''}</span></li>`
}

function scenarioRow(scenario: Scenario, language: PhoneLanguage): Markup {
  const { code, parameter, since } = scenario
  const number = `+223 70 ${code} ${parameter ? 'PP' : '00'} xx`
  const soon = since === 'later' ? html` <em class="soft">(${words[language].later})</em>` : ''
  const { elsewhere } = scenario
  const except = elsewhere ? html`<span class="soft">${elsewhere[language]}</span>` : ''
  return html`<li><code>${number}</code><span>${scenario[language]}${soon}</span>${except}</li>`
}
