import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** The text of a list's search, which "/" leads to. */
export function searchField(text: string, placeholder: string): Html {
  return html`<div class="field">
    <label for="q">Search</label>
    <input
      id="q"
      name="q"
      type="search"
      value="${text}"
      maxlength="200"
      autocomplete="off"
      spellcheck="false"
      placeholder="${placeholder}"
      aria-keyshortcuts="/"
    />
  </div>`;
}
