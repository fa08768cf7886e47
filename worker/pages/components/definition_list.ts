import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

/** Names and values; empty ones are left out. */
export function definitionList(facts: readonly (readonly [name: string, content: Content | null])[]): Html {
  return html`<dl class="facts">
    ${facts.map(([name, content]) =>
      content === null || content === ''
        ? ''
        : html`<dt>${name}</dt>
            <dd>${content}</dd>`,
    )}
  </dl>`;
}
