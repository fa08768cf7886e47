import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

export type BadgeKind = 'good' | 'accent' | 'warn' | 'bad' | 'plain';

/** A state in a word; the colour only repeats it. */
export function badge(kind: BadgeKind, word: string): Html {
  return html`<span class="badge ${kind}">${word}</span>`;
}
