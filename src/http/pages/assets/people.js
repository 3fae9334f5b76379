// The script of the pages to which e-mails link: it sends the e-mail's token to GraphQL. A problem is shown
// beside its field, and the first field with a problem gets the cursor.
const at = (query) => document.querySelector(query)
const form = at('form')
const status = at('[role=status]')
const password = at('#password')
const again = at('#again')
const given = JSON.parse(form.dataset.given)
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
})
