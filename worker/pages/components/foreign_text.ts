import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { cutShownText, showHidden } from '../../../shared/model/shown_text.ts';

/** A longer text is cut, and says by how much. */
const MOST_CHARACTERS = 20_000;
const MARK = /(<U\+[0-9A-F]{4,6}>)/;

/**
 * Foreign text, for example from a registry, a connector's spec or an agent. Invisible and bidirectional characters are
 * shown by their names, and the text is isolated in its direction.
 */
export function foreignText(text: string, mostCharacters = MOST_CHARACTERS): Html {
  const parts = cutShownText(showHidden(text), mostCharacters).split(MARK);
  return html`<bdi
    >${parts.map((part, index) => (index % 2 === 0 ? part : html`<span class="revealed">${part}</span>`))}</bdi
  >`;
}

/** A foreign link: only http(s), without a referrer. Anything else is shown as text. */
export function foreignLink(url: string, text = url): Html {
  const isWeb = /^https?:\/\//i.test(url) && URL.canParse(url);
  if (!isWeb) return foreignText(text);
  return html`<a href="${new URL(url).href}" rel="noopener noreferrer nofollow">${foreignText(text)}</a>`;
}
