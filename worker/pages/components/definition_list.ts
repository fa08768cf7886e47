import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

/** Facts, each under its name; those without content are left out. */
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
