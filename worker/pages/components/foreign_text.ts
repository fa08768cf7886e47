import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { cutShownText, showHidden } from '../../../shared/model/shown_text.ts';

/** A text that is longer is cut, and says by how much. */
const MOST_CHARACTERS = 20_000;
const MARK = /(<U\+[0-9A-F]{4,6}>)/;

/**
 * Text that others wrote, such as a registry, a connector's spec or an agent. Characters that nobody sees, or that turn the
 * order round, are shown by their names; the text stands apart from ours in its direction.
 */
export function foreignText(text: string): Html {
  const parts = cutShownText(showHidden(text), MOST_CHARACTERS).split(MARK);
  return html`<bdi
    >${parts.map((part, index) => (index % 2 === 0 ? part : html`<span class="revealed">${part}</span>`))}</bdi
  >`;
}

/** A link that others wrote: http(s) alone, and their site learns nothing of ours. Anything else is text. */
export function foreignLink(url: string, text = url): Html {
  const isWeb = /^https?:\/\//i.test(url) && URL.canParse(url);
  if (!isWeb) return foreignText(text);
  return html`<a href="${new URL(url).href}" rel="noopener noreferrer nofollow">${foreignText(text)}</a>`;
}
