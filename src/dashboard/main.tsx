import { Provider } from '@urql/preact'
import { render } from 'preact'
import { App } from './app.tsx'
import { openClient } from './client.ts'
import { chosenLanguage, loadWords, WordsContext } from './language.ts'
import { graphqlAddress } from './page-facts.ts'

const language = chosenLanguage()
const words = await loadWords(language)
document.documentElement.lang = language
document.title = words.title
// Browsers read the icon again when the path changes, and its address in the page is relative.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
icon?.setAttribute('href', icon.href)
const root = document.getElementById('app')
if (!root) throw new Error('The page has no element for the dashboard.')
root.replaceChildren()
render(
  <WordsContext.Provider value={{ language, words }}>
    <Provider value={openClient(graphqlAddress)}>
      <App />
    </Provider>
  </WordsContext.Provider>,
  root,
)
