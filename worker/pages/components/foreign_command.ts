import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { foreignText } from './foreign_text.ts';

const PLAIN_WORD = /^[\w@%+=:,./{}-]+$/;

/**
 * A foreign command, word by word as the program receives it, with visible word boundaries and invisible characters
 * escaped.
 */
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
