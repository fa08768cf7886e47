import { html } from 'hono/html';
import { capitalise } from '../../../shared/model/sentence.ts';
import type { Html } from '../frame/html.ts';

/** What kind something is, in a word that begins with a capital letter. `hosted-only`: of no meaning in local mode. */
export function tag(word: string, kind?: 'hosted-only'): Html {
  return html`<span class="tag ${kind ?? ''}">${capitalise(word)}</span>`;
}
