/**
 * Reads a decimal number. The result is whole only if the text is: JavaScript reads 99.99999999999999999 as
 * 100, and this as a number just below, so that each field that takes whole numbers refuses it by its name.
 * @returns NaN where the text is no number
 */
export function exactNumber(text: string): number {
  const number = Number(text)
  return Number.isInteger(number) && hasFraction(text) ? withFraction(number) : number
}

/**
 * Whether a JSON text may have a number of which JavaScript loses the fraction: one of many digits, or with a
 * negative power of ten. True also where only a text in it looks like such a number.
 */
export function mayLoseFraction(json: string): boolean {
  return /(?:^|[:,[\s])-?(?:[\d.]{17}|[\d.]+e-)/i.test(json)
}

function hasFraction(text: string): boolean {
  const parts = /^\s*[-+]?(\d*)\.?(\d*)(?:e([-+]?\d+))?\s*$/i.exec(text)
  const [, whole = '', fraction = '', power = '0'] = parts ?? []
  const last = `${whole}${fraction}`.search(/[1-9]0*$/)
  return last >= 0 && last >= whole.length + Number(power)
}

/** Beyond 2^51 the numbers next to a whole one may be whole too: the result is then far below, near 2^51. */
function withFraction(whole: number): number {
  const size = Math.min(Math.abs(whole), 2 ** 51) * (1 - Number.EPSILON)
  return (whole < 0 ? -1 : 1) * (size || Number.MIN_VALUE)
}
