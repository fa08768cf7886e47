import { html } from 'hono/html';
import type { Html } from './html.ts';

/** How pages look; `auto` follows the system. */
export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const TITLES: { readonly [T in Theme]: string } = { auto: 'Auto', light: 'Light', dark: 'Dark' };

export function isTheme(text: string | undefined): text is Theme {
  return THEMES.some((theme) => theme === text);
}

/** Chooses the look of this browser, and returns to the page at `path`, which has its query. */
export function themeSwitch(current: Theme, path: string): Html {
  return html`<form class="themes" method="post" action="/theme" aria-label="Look">
    <input type="hidden" name="return_to" value="${path}" />
    ${THEMES.map(
      (theme) =>
        html`<button class="compact" name="theme" value="${theme}" aria-pressed="${String(theme === current)}">
          ${TITLES[theme]}
        </button>`,
    )}
  </form>`;
}
