import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { formatDay, formatXof } from '../format.ts'
import { type AppLanguage, useLanguage, useWords } from '../language.ts'

/** The successful payments of one day. */
interface DayFigures {
  start: string
  count: number
  amount: number
}

const heightPx = 180

/** The money of each of the last days as bars, and as a table for those who cannot see the bars. */
export function MonthChart({ days, timeZone }: { days: readonly DayFigures[]; timeZone: string }) {
  const words = useWords()
  const language = useLanguage()
  const ground = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = ground.current
    if (!element) return undefined
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    let end = () => {}
    let isOver = false
    let again = () => {}
    void Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]).then(
      ([{ default: Plot }]) => {
        // The colours of a canvas do not follow the device: the chart is drawn anew.
        again = () => {
          end()
          if (!isOver) end = draw(Plot, element, { days, timeZone, language })
        }
        again()
      },
      () => {
        // The chart did not load: the table below it has the same figures.
        if (ground.current) ground.current.hidden = true
      },
    )
    const redraw = () => again()
    scheme.addEventListener('change', redraw)
    return () => {
      isOver = true
      scheme.removeEventListener('change', redraw)
      end()
    }
  }, [days, language])
  return (
    <figure>
      <div ref={ground} className="chart" aria-hidden="true" />
      <details>
        <summary>{words.home.asTable}</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.home.day}</th>
              <th scope="col">{words.home.payments}</th>
              <th scope="col">{words.home.amount}</th>
            </tr>
          </thead>
          <tbody>
            {days.toReversed().map(({ start, count, amount }) => (
              <tr key={start}>
                <th scope="row">{formatDay(start, language, timeZone)}</th>
                <td>{count}</td>
                <td>{formatXof(amount, language)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}

/** Draws the bars, and again at each change of the width. @returns a function that ends it */
function draw(
  Plot: typeof uPlot,
  element: HTMLElement,
  { days, timeZone, language }: { days: readonly DayFigures[]; timeZone: string; language: AppLanguage },
): () => void {
  const style = getComputedStyle(element)
  const [accent, soft, faint] = ['--accent', '--soft', '--faint'].map((name) =>
    style.getPropertyValue(name),
  ) as [string, string, string]
  const short = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 })
  const day = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short', timeZone })
  const axis = { stroke: soft, font: `12px ${style.fontFamily}`, ticks: { show: false } }
  const grid = { stroke: faint, width: 1 }
  const bars = Plot.paths.bars?.({ size: [0.7, 40] })
  const plot = new Plot(
    {
      width: element.clientWidth,
      height: heightPx,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 8, 0, 0],
      scales: {
        x: { time: false, range: [-0.6, days.length - 0.4] },
        y: { range: (_plot, _min, max) => [0, max || 1] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 28,
          values: (_plot, splits) => splits.map((index) => dayAt(days, index, day)),
        },
        { ...axis, grid, size: 52, values: (_plot, splits) => splits.map((value) => short.format(value)) },
      ],
      series: [
        {},
        {
          fill: accent,
          stroke: accent,
          width: 0,
          points: { show: false },
          ...(bars && { paths: bars }),
        },
      ],
    },
    [days.map((_day, index) => index), days.map(({ amount }) => amount)],
    element,
  )
  const watch = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: heightPx }))
  watch.observe(element)
  return () => {
    watch.disconnect()
    plot.destroy()
  }
}

function dayAt(days: readonly DayFigures[], index: number, form: Intl.DateTimeFormat): string {
  const at = days[index]
  return at ? form.format(new Date(at.start)) : ''
}
