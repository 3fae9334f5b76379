import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import type { HttpBindings } from '../request.ts'
import { assets } from './assets.ts'
import { type PageLanguage, page, readerOf } from './layout.ts'

interface Words {
  title: string
  send: string
  done: string
  password: string
  again: string
  /** The messages for problems, shown at a field or below the form. */
  short: string
  easy: string
  differ: string
  token: string
  broken: string
  /** For a page that was opened at another address than that of the service. */
  elsewhere: string
  scriptless: string
  /** The way on, after a new password. */
  next: string
  /** The sentence about the inviter and the team; the script fills the parts in braces. */
  lead: string
  leadByNobody: string
  roles: Readonly<Record<string, string>>
  /** The messages for a form that has no mistakes but is refused, by the code of the refusal. */
  refusals: Readonly<Record<string, string>>
}

/** A page to which an e-mail links: a person chooses a password there. */
interface PasswordPage {
  path: string
  /** The name of the mutation that the page sends, and the type of its input. */
  mutation: string
  input: string
  /** Whether the person is signed in afterwards. */
  signsIn: boolean
  words: Record<PageLanguage, Words>
}

const fr = {
  password: `Mot de passe (${limits.passwordLengthMin} caractères ou plus)`,
  again: 'Répétez le mot de passe',
  short: `Il faut au moins ${limits.passwordLengthMin} caractères.`,
  easy: 'Trop facile à deviner : choisissez plusieurs mots sans lien entre eux.',
  differ: 'Les deux mots de passe sont différents.',
  token: 'Ce lien a déjà servi, ou il est trop ancien : demandez-en un autre.',
  broken: 'Le service ne répond pas. Réessayez dans un instant.',
  elsewhere: "Ouvrez ce lien à l'adresse du service :",
  next: 'Se connecter',
  lead:
    '{invitedBy} vous invite dans l’équipe de {merchantName} (marchand {merchantId}), comme {role}. ' +
    'Vous vous connecterez avec {email}.',
  leadByNobody:
    'Vous êtes invité dans l’équipe de {merchantName} (marchand {merchantId}), comme {role}. ' +
    'Vous vous connecterez avec {email}.',
  roles: {
    OWNER: 'propriétaire',
    ADMIN: 'administrateur',
    FINANCE: 'responsable des finances',
    VIEWER: 'lecteur, sans droit de payer',
  },
  scriptless: 'Activez JavaScript pour utiliser cette page : le secret du lien reste hors des journaux.',
  refusals: {
    ACCOUNT_INACTIVE: 'Ce compte est fermé.',
    ADDRESS_NOT_ALLOWED: "Ce compte n'accepte pas les demandes de votre adresse IP.",
    RATE_LIMITED: 'Trop de demandes. Réessayez dans un instant.',
    OVERLOADED: 'Trop de demandes. Réessayez dans un instant.',
  },
}
const en: typeof fr = {
  password: `Password (${limits.passwordLengthMin} characters or more)`,
  again: 'Repeat the password',
  short: `Use at least ${limits.passwordLengthMin} characters.`,
  easy: 'Too easy to guess: choose several words that do not belong together.',
  differ: 'The two passwords are different.',
  token: 'This link was used already, or is too old: ask for another one.',
  broken: 'The service does not answer. Try again in a moment.',
  elsewhere: 'Open this link at the address of the service:',
  next: 'Sign in',
  lead:
    '{invitedBy} invites you to the team of {merchantName} (merchant {merchantId}), as {role}. ' +
    'You will sign in with {email}.',
  leadByNobody:
    'You are invited to the team of {merchantName} (merchant {merchantId}), as {role}. ' +
    'You will sign in with {email}.',
  roles: {
    OWNER: 'owner',
    ADMIN: 'administrator',
    FINANCE: 'finance officer',
    VIEWER: 'viewer who cannot pay',
  },
  scriptless: 'Turn on JavaScript to use this page: it keeps the secret in the link out of server logs.',
  refusals: {
    ACCOUNT_INACTIVE: 'This account is closed.',
    ADDRESS_NOT_ALLOWED: 'This account does not accept requests from your IP address.',
    RATE_LIMITED: 'Too many requests. Try again in a moment.',
    OVERLOADED: 'Too many requests. Try again in a moment.',
  },
}

const pages: readonly PasswordPage[] = [
  {
    path: '/join',
    mutation: 'acceptInvitation',
    input: 'AcceptInvitationInput',
    signsIn: true,
    words: {
      fr: {
        ...fr,
        title: "Rejoindre l'équipe",
        send: 'Rejoindre',
        done: "C'est fait : vous êtes connecté.",
      },
      en: { ...en, title: 'Join the team', send: 'Join', done: 'Done: you are signed in.' },
    },
  },
  {
    path: '/reset-password',
    mutation: 'resetPassword',
    input: 'ResetPasswordInput',
    signsIn: false,
    words: {
      fr: {
        ...fr,
        title: 'Nouveau mot de passe',
        send: 'Enregistrer',
        done: 'Votre mot de passe a été changé.',
      },
      en: { ...en, title: 'New password', send: 'Save', done: 'Your password has been changed.' },
    },
  },
]

/**
 * Makes the pages to which e-mails link. The token of an e-mail stands behind the `#` of the address and goes
 * to GraphQL alone, which takes the steps of `enter.ts`: the page itself is the same for every visitor and
 * reads no data.
 */
export function accountPages({ config: { mode }, addresses }: Services): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  for (const shown of pages) {
    const { path, words } = shown
    app.get(path, (c) => {
      const reader = readerOf(mode, c.req.url, c.req.header('accept-language'))
      const say = words[reader.language]
      c.header('Cache-Control', 'no-store')
      c.header('Content-Security-Policy', policy)
      return c.html(page(reader, say.title, form(say, shown, addresses.publicUrl), { head: script }))
    })
  }
  return app
}

const script = html`<script src="${assets.people.path}" defer></script>`

const policy =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
  "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

function form(say: Words, { path, mutation, input, signsIn }: PasswordPage, publicUrl: string) {
  const document = `mutation ($input: ${input}!) { ${mutation}(input: $input) {
    ... on Refusal { code message } ... on InvalidInputError { problems { field } } } }`
  const address = `${publicUrl}${path}`
  const lengthMin = limits.passwordLengthMin
  const question = signsIn ? invitation : null
  const given = JSON.stringify({ document, mutation, question, signsIn, address, say, lengthMin })
  const field = (name: string, label: string) => html`<label for="${name}">${label}</label>
<input id="${name}" type="password" autocomplete="new-password" maxlength="${limits.passwordLengthMax}"
  required aria-describedby="${name}-problem">
<p class="problem" id="${name}-problem" aria-live="polite"></p>`
  return html`<noscript><p>${say.scriptless}</p></noscript>
<p id="lead" hidden></p>
<form novalidate data-given="${given}">
${field('password', say.password)}
${field('again', say.again)}
<button>${say.send}</button>
</form>
<p role="status" tabindex="-1"></p>
<p id="next" hidden><a class="button" href="app">${say.next}</a></p>`
}

/** The question that the page asks about an invitation before it is accepted. */
const invitation = `query ($token: String!) { invitation(token: $token) {
  merchantId merchantName email role invitedBy } }`
