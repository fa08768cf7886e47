import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

/** `hosted-only`: it has no meaning for the one user of local mode. */
type Fact = readonly [name: string, content: Content | null, kind?: 'hosted-only'];

/** Names and values; empty ones are left out. */
export function definitionList(facts: readonly Fact[]): Html {
  return html`<dl class="facts">
    ${facts.map(([name, content, kind]) => {
      if (content === null || content === '') return '';
      const attribute = kind === undefined ? '' : html` class="${kind}"`;
      return html`<dt${attribute}>${name}</dt>
        <dd${attribute}>${content}</dd>`;
    })}
  </dl>`;
}
