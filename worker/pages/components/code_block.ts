import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** A command or a text to copy; the button comes with the island, for without it there is nothing that it could do. */
export function codeBlock(text: string): Html {
  return html`<div class="code" data-island="copy">
    <pre><code>${text}</code></pre>
  </div>`;
}
