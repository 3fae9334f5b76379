import { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { limits } from '../../shared/limits.ts'
import type { HttpBindings } from '../request.ts'
import { type Language, languageOf, page } from './layout.ts'

interface Words {
  title: string
  send: string
  done: string
  password: string
  again: string
  /** What is wrong, where it is: at a field, or below all. */
  short: string
  easy: string
  differ: string
  token: string
  broken: string
  scriptless: string
  /** Refusals of a right form, by their codes. */
  refusals: Readonly<Record<string, string>>
}

/** A page that a letter leads to: somebody chooses a password. */
interface PasswordPage {
  path: string
  /** The mutation that it sends, and the type of its input. */
  mutation: string
  input: string
  words: Record<Language, Words>
}

const fr = {
  password: `Mot de passe (${limits.passwordLengthMin} caractères ou plus)`,
  again: 'Encore une fois',
  short: `Il faut au moins ${limits.passwordLengthMin} caractères.`,
  easy: 'Trop facile à deviner : prenez plusieurs mots qui ne vont pas ensemble.',
  differ: 'Les deux mots de passe diffèrent.',
  token: 'Ce lien a déjà servi, ou il est trop ancien : demandez-en un autre.',
  broken: 'Le service ne répond pas. Réessayez dans un instant.',
  scriptless: 'Cette page a besoin de JavaScript : le lien ne doit passer par aucun serveur.',
  refusals: {
    ACCOUNT_INACTIVE: 'Ce compte est fermé.',
    ADDRESS_NOT_ALLOWED: "Ce compte n'admet pas l'adresse depuis laquelle vous l'appelez.",
    RATE_LIMITED: 'Trop de demandes. Réessayez dans un instant.',
    OVERLOADED: 'Trop de demandes. Réessayez dans un instant.',
  },
}
const en: typeof fr = {
  password: `Password (${limits.passwordLengthMin} characters or more)`,
  again: 'Once more',
  short: `It takes at least ${limits.passwordLengthMin} characters.`,
  easy: 'Too easy to guess: take several words that do not belong together.',
  differ: 'The two passwords differ.',
  token: 'This link was used already, or is too old: ask for another one.',
  broken: 'The service does not answer. Try again in a moment.',
  scriptless: 'This page needs JavaScript: no server on the way may see the link.',
  refusals: {
    ACCOUNT_INACTIVE: 'This account is closed.',
    ADDRESS_NOT_ALLOWED: 'This account does not admit the address that you call from.',
    RATE_LIMITED: 'Too many requests. Try again in a moment.',
    OVERLOADED: 'Too many requests. Try again in a moment.',
  },
}

const pages: readonly PasswordPage[] = [
  {
    path: '/join',
    mutation: 'acceptInvitation',
    input: 'AcceptInvitationInput',
    words: {
      fr: {
        ...fr,
        title: "Rejoindre l'équipe",
        send: 'Rejoindre',
        done: "C'est fait : vous pouvez vous connecter.",
      },
      en: { ...en, title: 'Join the team', send: 'Join', done: 'Done: you can sign in.' },
    },
  },
  {
    path: '/reset-password',
    mutation: 'resetPassword',
    input: 'ResetPasswordInput',
    words: {
      fr: {
        ...fr,
        title: 'Nouveau mot de passe',
        send: 'Enregistrer',
        done: 'Votre mot de passe est changé.',
      },
      en: { ...en, title: 'New password', send: 'Save', done: 'Your password is changed.' },
    },
  },
]

/** The pages that letters lead to. What a letter proves stands behind the `#` and goes to GraphQL alone. */
export function peoplePages(): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  for (const { path, mutation, input, words } of pages) {
    app.get(path, (c) => {
      const language = languageOf(c.req.query('lang'), c.req.header('accept-language'))
      c.header('Cache-Control', 'no-store')
      c.header('Content-Security-Policy', policy)
      return c.html(page(language, words[language].title, form(words[language], mutation, input)))
    })
  }
  return app
}

const policy =
  "default-src 'none'; style-src 'self'; script-src 'unsafe-inline'; connect-src 'self'; " +
  "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

function form(say: Words, mutation: string, input: string) {
  const document = `mutation ($input: ${input}!) { ${mutation}(input: $input) {
    ... on Refusal { code message } ... on InvalidInputError { problems { field } } } }`
  // In a script `<` could end it.
  const given = JSON.stringify({ document, mutation, say, ...bounds }).replaceAll('<', '\\u003c')
  const field = (name: string, label: string) => html`<label for="${name}">${label}</label>
<input id="${name}" type="password" autocomplete="new-password" maxlength="${limits.passwordLengthMax}"
  required aria-describedby="${name}-problem">
<p class="problem" id="${name}-problem" aria-live="polite"></p>`
  return html`<noscript><p>${say.scriptless}</p></noscript>
<form novalidate>
${field('password', say.password)}
${field('again', say.again)}
<button>${say.send}</button>
</form>
<p role="status" tabindex="-1"></p>
<script>${raw(`const given = ${given}\n${script}`)}</script>`
}

const bounds = { lengthMin: limits.passwordLengthMin }

/** What is wrong stands beside its field, and the first such field has the cursor. */
const script = `
const at = (query) => document.querySelector(query)
const form = at('form'), status = at('[role=status]'), password = at('#password'), again = at('#again')
at('#other').href += location.hash
const show = (problems) => {
  for (const field of [password, again]) {
    at('#' + field.id + '-problem').textContent = problems[field.id] || ''
    field.setAttribute('aria-invalid', String(field.id in problems))
  }
  status.textContent = problems.all || ''
  const wrong = [password, again].find(({ id }) => id in problems)
  if (wrong) wrong.focus()
  else if (problems.all) status.focus()
}
const problemsOf = ({ code, message, problems }) => {
  const { token, easy, refusals } = given.say
  const fields = (problems || []).map(({ field }) => field)
  if (fields.includes('token')) return { all: token }
  if (fields.includes('password')) return { password: easy }
  return { all: refusals[code] || message }
}
const send = async () => {
  const input = { token: location.hash.slice(1), password: password.value }
  const response = await fetch('graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: given.document, variables: { input } }),
  })
  const { data, errors } = await response.json()
  const result = data && data[given.mutation]
  return result || { code: errors[0].extensions.code, message: errors[0].message }
}
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const { say, lengthMin } = given
  if ([...password.value].length < lengthMin) return show({ password: say.short })
  if (password.value !== again.value) return show({ again: say.differ })
  const button = form.querySelector('button')
  button.disabled = true
  try {
    const result = await send()
    if (result.code) show(problemsOf(result))
    else {
      form.remove()
      status.textContent = say.done
      status.focus()
    }
  } catch {
    show({ all: say.broken })
  }
  button.disabled = false
})`
