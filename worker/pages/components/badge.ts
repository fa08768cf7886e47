import { html } from 'hono/html';
import { capitalise } from '../../../shared/model/sentence.ts';
import type { Content, Html } from '../frame/html.ts';

export type BadgeKind = 'good' | 'accent' | 'warn' | 'bad' | 'plain';

/** A state in a word; the colour only repeats it. A word begins with a capital letter, and a name that is given as HTML stays. */
export function badge(kind: BadgeKind, word: Content): Html {
  return html`<span class="badge ${kind}">${typeof word === 'string' ? capitalise(word) : word}</span>`;
}
