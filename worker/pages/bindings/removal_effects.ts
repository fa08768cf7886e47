import { html } from 'hono/html';
import type { RemovalEffect, RemovalPreview } from '../../../shared/wire/removals.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { useLink } from './use_words.ts';

/** What a page about a deletion shows. */
export interface RemovalView {
  readonly preview: RemovalPreview;
  readonly nowMs: number;
}

/** What deleting something would do, as a list: the same sentences as in the API and the command line. */
export function removalEffects({ effects, last_used_at: lastUsed }: RemovalPreview, nowMs: number): Html {
  return html`<ul class="effects">
      ${effects.map(effectItem)}
    </ul>
    ${lastUsed === null ? '' : html`<p class="quiet small">Last used ${timeAgo(lastUsed, nowMs)}.</p>`}`;
}

function effectItem({ text, uses, names }: RemovalEffect): Html {
  const below = [...uses.map(useLink), ...names.map((name) => html`<code>${foreignText(name)}</code>`)];
  if (below.length === 0) return html`<li>${text}</li>`;
  return html`<li>
    ${text}
    <ul class="plain">
      ${below.map((each) => html`<li>${each}</li>`)}
    </ul>
  </li>`;
}
