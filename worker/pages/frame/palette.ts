import { html } from 'hono/html';
import type { Content, Html } from './html.ts';

/** The longest text that is searched for. */
export const MAX_SEARCH = 200;

/**
 * What Ctrl-K opens on each page, before the server has answered. It is a popover, because a modal dialog makes the page below inert: the browser
 * then styles all of a long page anew, which takes longer than the search itself. So its island keeps Tab in it. A click on its words gives it the
 * focus, so that its keys work.
 */
export function paletteTemplate(): Html {
  return html`<template id="palette-part">
    <div class="palette-box" popover="manual" role="dialog" aria-modal="true" aria-label="Find" tabindex="-1">
      ${palette()}
    </div>
  </template>`;
}

/** The search for everything: on its own page, and in that dialog. */
export function palette(text = '', words: Content = '', results: Content = ''): Html {
  return html`<div id="palette" class="palette">
    <form method="get" action="/find" role="search" aria-label="Everything" data-island="palette">
      <div class="field">
        <label for="palette-q">Find</label>
        <input
          id="palette-q"
          name="q"
          type="search"
          value="${text}"
          maxlength="${MAX_SEARCH}"
          autocomplete="off"
          spellcheck="false"
          placeholder="github, a host, https://…"
        />
      </div>
      <button>Find</button>
    </form>
    <p class="small quiet" id="palette-found" role="status">${words}</p>
    <div id="palette-results">${results}</div>
  </div>`;
}
