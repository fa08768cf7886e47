import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** Two letters in the place of a picture: one of a publisher's own would be a call to a site of theirs. */
export function initials(name: string): Html {
  const words = (name.split('/').at(-1) ?? '').split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const letters = words.slice(0, 2).map((word) => Array.from(word)[0] ?? '');
  return html`<span class="initials" aria-hidden="true">${letters.join('').toUpperCase()}</span>`;
}
