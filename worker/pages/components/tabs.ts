import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

interface Tab {
  readonly path: string;
  readonly title: string;
  readonly isCurrent: boolean;
}

/** Views of one list, each with its own URL. */
export function tabs(label: string, all: readonly Tab[]): Html {
  return html`<nav class="tabs" aria-label="${label}">
    ${all.map(({ path, title, isCurrent }) =>
      isCurrent ? html`<a href="${path}" aria-current="page">${title}</a>` : html`<a href="${path}">${title}</a>`,
    )}
  </nav>`;
}
