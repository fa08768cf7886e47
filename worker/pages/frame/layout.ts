import { html } from 'hono/html';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from './html.ts';

export type { Html } from './html.ts';

/** The width of a page: `card` for a question or a message, `narrow` for text and forms. */
type PageWidth = 'card' | 'narrow' | 'wide';

/** A page without its frame (shell.ts). */
export interface Page {
  readonly title: string;
  readonly content: Html;
  readonly width: PageWidth;
  /** Its island registers the service worker, for which the policy of the page lets one name make a script's URL. */
  readonly registersWorker?: boolean;
}

/** A page: its content, and the title of the browser's tab. */
export function layout(title: string, content: Html, width: PageWidth = 'wide'): Page {
  return { title, content, width };
}

/** A page with one message, and where to go from it. */
export function messagePage(title: string, message: string, next?: { path: string; title: string }): Page {
  const content = html`${pageHeader({ title })}
    <p>${message}</p>
    ${next === undefined ? '' : html`<div class="actions"><a class="button" href="${next.path}">${next.title}</a></div>`}`;
  return layout(title, content, 'card');
}
