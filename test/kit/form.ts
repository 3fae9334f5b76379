/** Writes a form with this table of recipients as its file. */
export function formOf(table: string): string {
  const head = 'Content-Disposition: form-data; name="file"; filename="recipients.csv"'
  return `--form\r\n${head}\r\n\r\n${table}\r\n--form--\r\n`
}

export const formHeaders = { 'Content-Type': 'multipart/form-data; boundary=form' }
