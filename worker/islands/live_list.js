// A list that follows the audit stream: after each new event it is replaced with the server's current version. Its times pass,
// and the person can stop all of it.

import { fetchDocument, replacePart } from './refreshed.js';
import { refreshTimes } from './relative_time.js';

const SETTLE_MS = 400;
const TICK_MS = 5_000;

/**
 * @param {HTMLElement} element has `id` and `data-stream` (the stream's address). `data-also` has the ids of other parts of the
 * page that show the same facts. A `[data-live-of]` with its id says how old it is.
 */
export function start(element) {
  const { stream, also = '' } = element.dataset;
  if (stream === undefined) return;
  const parts = [element.id, ...also.split(' ').filter((id) => id !== '')];
  const state = liveState(element);
  let waiting = false;
  const refresh = async () => {
    waiting = false;
    if (state.isPaused()) return;
    const fresh = await fetchDocument(location.href);
    if (fresh !== null && !state.isPaused()) for (const part of parts) replacePart(fresh, part);
    state.say(fresh === null ? 'Not up to date: reload the page' : 'Live');
  };
  state.onResume(() => void refresh());
  const source = new EventSource(stream);
  // What happened between the server's answer and the stream's beginning; later the stream goes on where it ended.
  source.addEventListener('open', () => void refresh(), { once: true });
  source.addEventListener('open', () => state.say('Live'));
  source.addEventListener('error', () => state.say('Not up to date: trying again'));
  source.addEventListener('audit', () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => void refresh(), SETTLE_MS);
  });
  const ticking = setInterval(() => {
    if (state.isPaused()) return;
    for (const part of parts) refreshTimes(document.getElementById(part) ?? element);
  }, TICK_MS);
  addEventListener(
    'pagehide',
    () => {
      source.close();
      clearInterval(ticking);
    },
    { once: true },
  );
}

/**
 * The text beside the list that says how old it is, with a button to pause; both stay when the list is replaced.
 * @param {HTMLElement} element
 */
function liveState(element) {
  const place = document.querySelector(`[data-live-of="${CSS.escape(element.id)}"]`);
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'compact';
  button.textContent = 'Pause';
  place?.after(button);
  let isPaused = false;
  let words = '';
  /** @type {(() => void) | null} */
  let resume = null;
  const show = () => {
    const shown = isPaused ? 'Paused' : words;
    if (place !== null && place.textContent !== shown) place.textContent = shown;
  };
  button.addEventListener('click', () => {
    isPaused = !isPaused;
    button.textContent = isPaused ? 'Continue' : 'Pause';
    show();
    if (!isPaused) resume?.();
  });
  return {
    isPaused: () => isPaused,
    /** @param {() => void} act */
    onResume(act) {
      resume = act;
    },
    /** @param {string} state */
    say(state) {
      words = state;
      show();
    },
  };
}
