import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** A command or a text to copy. A script adds the button, because it does not work without one. */
export function codeBlock(text: string): Html {
  return html`<div class="code" data-island="copy" data-own="${text}">
    <pre><code>${text}</code></pre>
  </div>`;
}
