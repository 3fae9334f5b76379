// The pages of a payment link work without JavaScript. This script adds the suggested operator, a guard
// against a double press, the live update of a waiting payment with its time, and the buttons of the receipt.
const at = (query) => document.querySelector(query)

const form = at('form[data-ranges]')
if (form) {
  const phone = at('#phone')
  const suggested = at('#suggested')
  const unknown = suggested.textContent
  const ranges = form.dataset.ranges.split(',').map((pair) => pair.split('='))
  // The longest prefix that fits decides, as on the server.
  const suggest = () => {
    const number = phone.value.replace(/[^\d+]/g, '').replace(/^(\+|00)?223(?=\d{8}$)/, '')
    const fitting = ranges.filter(([prefix]) => number.startsWith(prefix))
    fitting.sort(([a], [b]) => b.length - a.length)
    const chosen = form.querySelector('[name=operator]:checked')
    const fits = chosen?.value ? chosen : form.querySelector(`[value="${fitting[0]?.[1]}"]`)
    const [name, state] = fits ? fits.parentElement.querySelectorAll('span') : []
    suggested.textContent = name
      ? [name, state]
          .map((each) => each.textContent)
          .join(' ')
          .trim()
      : unknown
  }
  phone.addEventListener('input', suggest)
  form.addEventListener('change', suggest)
  suggest()
  const button = form.querySelector('button')
  form.addEventListener('submit', (event) => {
    if (button.getAttribute('aria-disabled') === 'true') return event.preventDefault()
    button.setAttribute('aria-disabled', 'true')
    button.textContent = button.dataset.busy
  })
  // A payer who comes back to the page can press again.
  const idle = button.textContent
  addEventListener('pageshow', () => {
    button.removeAttribute('aria-disabled')
    button.textContent = idle
  })
}

const waiting = at('[data-live]')
if (waiting) {
  const live = new EventSource(waiting.dataset.live)
  // A reload would take the payer away from the answer to the form. The page still listens: on a bad network
  // that answer may never come.
  let sentAt = -Infinity
  addEventListener('submit', () => (sentAt = performance.now()))
  const reload = (pause) =>
    setTimeout(() => location.reload(), Math.max(pause, sentAt + 25_000 - performance.now()))
  live.addEventListener('over', () => {
    live.close()
    reload(0)
  })
  live.addEventListener('error', () => {
    if (live.readyState === EventSource.CLOSED) reload(5000)
  })
}

const left = at('#left')
if (left) {
  const until = performance.now() + left.dataset.seconds * 1000
  const shown = left.querySelector('b')
  const count = () => {
    const seconds = Math.round((until - performance.now()) / 1000)
    if (seconds > 0)
      shown.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    else {
      clearInterval(timer)
      left.textContent = left.dataset.over
    }
  }
  const timer = setInterval(count, 1000)
  count()
}

const print = at('#print')
if (print) {
  print.hidden = false
  print.addEventListener('click', () => window.print())
}

const share = at('#share')
if (share) {
  share.hidden = false
  share.href = `https://wa.me/?text=${encodeURIComponent(`${document.title} ${location.href}`)}`
}
