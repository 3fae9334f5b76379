import { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { limits } from '../../shared/limits.ts'
import type { HttpBindings } from '../request.ts'
import { type Language, languageOf, page } from './layout.ts'

interface Words {
  title: string
  password: string
  again: string
  send: string
  differ: string
  done: string
  broken: string
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
  differ: 'Les deux mots de passe diffèrent.',
  broken: 'Le service ne répond pas. Réessayez dans un instant.',
}
const en = {
  password: `Password (${limits.passwordLengthMin} characters or more)`,
  again: 'Once more',
  differ: 'The two passwords differ.',
  broken: 'The service does not answer. Try again in a moment.',
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
      const language = languageOf(c.req.query('lang'))
      c.header('Cache-Control', 'no-store')
      c.header('Content-Security-Policy', policy)
      return c.html(page(language, words[language].title, form(words[language], mutation, input)))
    })
  }
  return app
}

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; " +
  "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

function form(say: Words, mutation: string, input: string) {
  const document = `mutation ($input: ${input}!) { ${mutation}(input: $input) {
    __typename ... on Refusal { message } } }`
  // In a script `<` could end it.
  const given = JSON.stringify({ document, mutation, say }).replaceAll('<', '\\u003c')
  return html`<form>
<label>${say.password}<input type="password" name="password" autocomplete="new-password"
  minlength="${limits.passwordLengthMin}" maxlength="${limits.passwordLengthMax}" required></label>
<label>${say.again}<input type="password" name="again" autocomplete="new-password" required></label>
<button>${say.send}</button>
</form>
<p role="status"></p>
<script>${raw(`const given = ${given}\n${script}`)}</script>`
}

const script = `
const form = document.querySelector('form'), status = document.querySelector('[role=status]')
const other = document.querySelector('#other')
other.href += location.hash
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const { password, again } = form.elements
  if (password.value !== again.value) return void (status.textContent = given.say.differ)
  form.querySelector('button').disabled = true
  try {
    const input = { token: location.hash.slice(1), password: password.value }
    const response = await fetch('graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: given.document, variables: { input } }),
    })
    const { data, errors } = await response.json()
    const result = data && data[given.mutation]
    status.textContent = result ? result.message || given.say.done : errors[0].message
    if (result && !result.message) form.remove()
  } catch {
    status.textContent = given.say.broken
  }
  form.querySelector('button').disabled = false
})`
