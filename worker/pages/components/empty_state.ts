import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';
import { codeBlock } from './code_block.ts';

/** Says that a list is empty and what to do next, with a command and a button. */
export function emptyState(empty: {
  readonly title: string;
  readonly next: Content;
  readonly command?: string;
  readonly action?: Content;
}): Html {
  const { title, next, command, action } = empty;
  return html`<div class="empty">
    <h2>${title}</h2>
    <p>${next}</p>
    ${command === undefined ? '' : codeBlock(command)} ${action ?? ''}
  </div>`;
}
