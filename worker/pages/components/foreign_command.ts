import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { foreignText } from './foreign_text.ts';

const PLAIN_WORD = /^[\w@%+=:,./{}-]+$/;

/** A command that others wrote, word by word as the program gets them: where one ends is seen, and what no eye would see too. */
export function foreignCommand(words: readonly string[]): Html {
  return html`<div class="code">
    <pre><code>${words.map(
      (word, index) =>
        html`${index === 0 ? '' : ' '}<span class="word"
            >${PLAIN_WORD.test(word) ? foreignText(word) : html`'${foreignText(word)}'`}</span
          >`,
    )}</code></pre>
  </div>`;
}
