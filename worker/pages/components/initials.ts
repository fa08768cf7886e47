import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** Two letters instead of a publisher's image, which would be a request to the publisher's site. */
export function initials(name: string): Html {
  const words = (name.split('/').at(-1) ?? '').split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const letters = words.slice(0, 2).map((word) => Array.from(word)[0] ?? '');
  return html`<span class="initials" aria-hidden="true">${letters.join('').toUpperCase()}</span>`;
}
