import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/**
 * Two letters, and over them the publisher's image if our own origin has it: the browser sends no request to the
 * publisher's site.
 */
export function initials(name: string, imagePath: string | null = null): Html {
  const words = (name.split('/').at(-1) ?? '').split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const letters = words.slice(0, 2).map((word) => Array.from(word)[0] ?? '');
  const image = imagePath === null ? '' : html`<img src="${imagePath}" alt="" width="40" height="40" loading="lazy" />`;
  return html`<span class="initials" aria-hidden="true">${letters.join('').toUpperCase()}${image}</span>`;
}
