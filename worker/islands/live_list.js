// A list that follows the audit stream: after each new event it is replaced with the server's current version.

import { fetchDocument, replacePart } from './refreshed.js';

const SETTLE_MS = 400;

/** @param {HTMLElement} element has `id`, `data-stream` (the stream's address) and in it a `[data-live-state]` of words */
export function start(element) {
  const { stream } = element.dataset;
  if (stream === undefined) return;
  const state = liveState(element);
  let waiting = false;
  const refresh = async () => {
    waiting = false;
    const fresh = await fetchDocument(location.href);
    if (fresh !== null) replacePart(fresh, element.id);
    state.say(fresh === null ? 'Not up to date: reload the page' : 'Live');
  };
  const source = new EventSource(stream);
  source.addEventListener('open', () => state.say('Live'));
  source.addEventListener('error', () => state.say('Not up to date: trying again'));
  source.addEventListener('audit', () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => void refresh(), SETTLE_MS);
  });
  addEventListener('pagehide', () => source.close(), { once: true });
}

/**
 * The text beside the list that says how old it is; it stays when the list is replaced.
 * @param {HTMLElement} element
 */
function liveState(element) {
  const place = document.querySelector(`[data-live-of="${CSS.escape(element.id)}"]`);
  return {
    /** @param {string} words */
    say(words) {
      if (place !== null && place.textContent !== words) place.textContent = words;
    },
  };
}
