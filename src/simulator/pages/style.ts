/** The style of every page: legible at 320 pixels, high contrast, light and dark. */
export const style = `
:root {
  --ink: #14213d; --soft: #4a5568; --line: #d5dbe6; --paper: #fff; --ground: #eef2f8;
  --accent: #0b5fc4; --good: #11703c; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #eef2f8; --soft: #b4bfd1; --line: #3a4760; --paper: #1a2438; --ground: #0f1626;
    --accent: #8ab8ff; --good: #7ddba3; --bad: #ffb4ab;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
a { color: var(--accent); }
header, main, footer { max-width: 46rem; margin: 0 auto; padding: .75rem 1rem; }
.narrow header, .narrow main, .narrow footer { max-width: 26rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; }
header strong { margin-right: auto; }
@media (max-width: 26rem) { header strong { flex: 1 0 100%; } }
h1 { font-size: 1.4rem; line-height: 1.25; margin: .25rem 0 1rem; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
.card {
  background: var(--paper); border: 1px solid var(--line); border-radius: .9rem;
  padding: 1rem; margin: 0 0 .75rem;
}
.card h2, .card p:first-child { margin-top: 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem; }
.grid .card { margin: 0; }
.sum { font-size: 1.9rem; font-weight: 700; letter-spacing: -.01em; margin: .1rem 0; }
.grid .sum { font-size: 1.15rem; white-space: nowrap; }
.soft { color: var(--soft); font-size: .9rem; margin: .15rem 0; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.rows { list-style: none; margin: 0; padding: 0; }
.rows li {
  display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem .75rem;
  padding: .55rem 0; border-top: 1px solid var(--line);
}
.rows li:first-child { border-top: 0; }
.rows span { overflow-wrap: anywhere; }
code { font: .92em ui-monospace, SFMono-Regular, Menlo, monospace; overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin: .75rem 0 .25rem; }
input {
  width: 100%; font: inherit; color: inherit; background: var(--paper);
  border: 1.5px solid var(--soft); border-radius: .6rem; padding: .65rem .75rem;
}
.two { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem; margin-top: .9rem; }
button, .button {
  display: block; width: 100%; min-height: 2.9rem; padding: .7rem .5rem; cursor: pointer;
  font: inherit; font-weight: 650; text-align: center; text-decoration: none;
  border: 1.5px solid var(--accent); border-radius: .6rem;
  background: var(--accent); color: var(--paper);
}
.plain { background: transparent; color: var(--accent); }
form > button { margin-top: .9rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
`
