// The script of the pages to which e-mails link: it sends the e-mail's token to GraphQL. A problem is shown
// beside its field, and the first field with a problem gets the cursor.
const at = (query) => document.querySelector(query)
const form = at('form')
const status = at('[role=status]')
const password = at('#password')
const again = at('#again')
const given = JSON.parse(form.dataset.given)
const token = location.hash.slice(1)
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
  const { token: used, easy, elsewhere, refusals } = given.say
  const fields = (problems || []).map(({ field }) => field)
  if (fields.includes('token')) return { all: used }
  if (fields.includes('password')) return { password: easy }
  if (fields.includes('cookie')) return { all: elsewhere + ' ' + given.address + location.hash }
  return { all: refusals[code] || message }
}
const ask = async (query, variables) => {
  const response = await fetch('graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  })
  return response.json()
}
const send = async () => {
  const input = { token, password: password.value, ...(given.signsIn && { cookie: true }) }
  const { data, errors } = await ask(given.document, { input })
  const result = data && data[given.mutation]
  return result || { code: errors[0].extensions.code, message: errors[0].message }
}
// Says who invites to what. Where the question fails, the form can still be sent.
const introduce = async () => {
  const { data } = await ask(given.question, { token })
  if (!data) return
  const { invitation } = data
  form.hidden = invitation === null
  if (invitation === null) {
    at('#next').hidden = false
    return show({ all: given.say.token })
  }
  const { say } = given
  const parts = { ...invitation, role: say.roles[invitation.role] }
  const sentence = invitation.invitedBy === null ? say.leadByNobody : say.lead
  const lead = at('#lead')
  lead.textContent = sentence.replace(/\{(\w+)\}/g, (_part, name) => parts[name])
  lead.hidden = false
}
if (given.question !== null) introduce().catch(() => {})
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
      if (given.signsIn) location.assign('app')
      else at('#next').hidden = false
    }
  } catch {
    show({ all: say.broken })
  }
  button.disabled = false
})
