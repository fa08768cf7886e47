import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

/** The head of a page: its h1, a sentence about its purpose, and its actions. */
export function pageHeader(header: {
  readonly title: Content;
  readonly lead?: Content;
  /** Links and buttons at the right. */
  readonly actions?: Content;
  /** The parent page. */
  readonly above?: { readonly path: string; readonly title: string };
}): Html {
  const { title, lead, actions, above } = header;
  return html`<div class="page-header">
    <div>
      ${above === undefined ? '' : html`<a class="crumb" href="${above.path}">${above.title}</a>`}
      <h1>${title}</h1>
      ${lead === undefined ? '' : html`<p class="lead">${lead}</p>`}
    </div>
    ${actions === undefined ? '' : html`<div class="actions">${actions}</div>`}
  </div>`;
}
