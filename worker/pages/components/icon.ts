import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import type { IconName } from '../frame/navigation.ts';

/** Strokes on a grid of 16. */
const STROKES: Readonly<Record<IconName | 'mark' | 'menu', string>> = {
  mark: 'M8 1.5 13.5 4v4c0 3.2-2.3 5.4-5.5 6.5C4.8 13.4 2.5 11.2 2.5 8V4zM5.5 8h5M8 5.5v5',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  overview: 'M2.5 2.5h4.5v5H2.5zM9 2.5h4.5v3H9zM9 7.5h4.5v6H9zM2.5 9.5h4.5v4H2.5z',
  inbox: 'M2.5 9.5 4 3h8l1.5 6.5v4h-11zM2.5 9.5h3.5l1 1.5h2l1-1.5h3.5',
  list: 'M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5',
  key: 'M8.8 7.2 13.5 2.5M11.5 4.5l1.5 1.5M9.5 10a3 3 0 1 1-6 0 3 3 0 0 1 6 0z',
  link: 'M6.5 9.5l3-3M7 4.5l1.3-1.3a2.9 2.9 0 0 1 4.1 4.1L11 8.7M9 11.5l-1.3 1.3a2.9 2.9 0 0 1-4.1-4.1L5 7.3',
  server: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.5M5 11h.5',
  shop: 'M3 6.5v7h10v-7M2 6l1.5-3.5h9L14 6a2 2 0 0 1-4 0 2 2 0 0 1-4 0 2 2 0 0 1-4 0z',
  plug: 'M5.5 2v3.5M10.5 2v3.5M3.5 5.5h9V8a4.5 4.5 0 0 1-9 0zM8 12.5V15',
  person: 'M10.5 5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0zM3 13.5c.6-2.6 2.6-4 5-4s4.4 1.4 5 4',
  book: 'M8 4c-1.2-1-3-1.5-5.5-1.5v10c2.500 0 4.300.5 5.500 1.500 1.200-1 3-1.500 5.500-1.500v-10C11 2.500 9.200 3 8 4zM8 4v10',
  parts: 'M2.5 2.5h4.5v4.5H2.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5H2.5zM11.25 9v4.5M9 11.25h4.5',
  box: 'M8 1.5 13.5 4.5v7L8 14.5 2.5 11.5v-7zM2.5 4.5 8 7.5l5.5-3M8 7.5v7',
  people:
    'M8 5.5a2.25 2.25 0 1 1-4.5 0 2.25 2.25 0 0 1 4.5 0zM1.5 13.5c.4-2.3 2-3.6 4.25-3.6s3.85 1.3 4.25 3.6M10.25 3.5a2.25 2.25 0 0 1 0 4.2M12 10.2c1.4.5 2.2 1.7 2.5 3.3',
  building: 'M3 14.5V2.5h7v12M10 6.5h3v8M1.5 14.5h13M5.5 5.5h2M5.5 8.5h2M5.5 11.5h2',
  shield: 'M8 1.5 13.5 4v4c0 3.2-2.3 5.4-5.5 6.5C4.8 13.4 2.5 11.2 2.5 8V4zM5.5 8l1.8 1.8 3.2-3.6',
  door: 'M7 2.5h6v11H7M2.5 8H9M6.5 5.5 9 8l-2.5 2.5',
};

/** A decorative icon, hidden from screen readers. */
export function icon(name: IconName | 'mark' | 'menu'): Html {
  return html`<svg
    width="16"
    height="16"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.4"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    <path d="${STROKES[name]}" />
  </svg>`;
}
