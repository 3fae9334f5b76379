// The pages of a payment link work without JavaScript. This script adds the suggested operator, a guard
// against a double press, the live update of a waiting payment, and the print button.
const at = (query) => document.querySelector(query)

const form = at('form')
if (form) {
  const phone = at('#phone')
  const suggested = at('#suggested')
  const ranges = form.dataset.ranges.split(',').map((pair) => pair.split('='))
  // The longest prefix that fits decides, as on the server.
  const suggest = () => {
    const number = phone.value.replace(/[^\d+]/g, '').replace(/^(\+|00)?223(?=\d{8}$)/, '')
    const fitting = ranges.filter(([prefix]) => number.startsWith(prefix))
    fitting.sort(([a], [b]) => b.length - a.length)
    suggested.textContent = fitting.length > 0 ? fitting[0][1] : ''
  }
  phone.addEventListener('input', suggest)
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
  live.addEventListener('over', () => {
    live.close()
    location.reload()
  })
  live.addEventListener('error', () => {
    if (live.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000)
  })
}

const print = at('#print')
if (print) {
  print.hidden = false
  print.addEventListener('click', () => window.print())
}
