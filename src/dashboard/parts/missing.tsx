import { useWords } from '../language.ts'

/** The content of a page whose object does not exist. @param props.text the reason, in words */
export function Missing({ text }: { text: string }) {
  const words = useWords()
  return (
    <section className="card">
      <h1>{words.notFound}</h1>
      <p>{text}</p>
    </section>
  )
}

/** Whether the part of an address can be an id. Another one is not sent to the service. */
export function isId(text: string): boolean {
  return /^\d{1,9}$/.test(text)
}
