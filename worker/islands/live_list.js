// A list that follows the audit stream: after each new event it is brought up to the server's current version, and at least once
// a minute, because some of what it says ends by itself. Its times pass, and the person can stop all of it.

import { fetchDocument, makePlan, replacePart } from './refreshed.js';
import { refreshTimes } from './relative_time.js';
import { followEvents } from './stream.js';

const SETTLE_MS = 400;
const FILTERED_SETTLE_MS = 2_000;
const TICK_MS = 5_000;
const REFRESH_MS = 60_000;
const NOT_UP_TO_DATE = 'Not up to date: trying again';

/**
 * @param {HTMLElement} element has `id` and `data-events` (how the types of its events begin, with commas). `data-also` has the ids of other
 * parts of the page that show the same facts. With `data-filtered` most events change nothing, so the list is asked for less often.
 * A `[data-live-of]` with its id says how old it is.
 */
export function start(element) {
  const { events = '', filtered, also = '' } = element.dataset;
  const parts = [element.id, ...also.split(' ').filter((id) => id !== '')];
  const state = liveState(element);
  let isConnected = false;
  const refresh = makePlan(async () => {
    refresh(REFRESH_MS);
    if (state.isPaused() || document.hidden) return;
    const fresh = await fetchDocument(location.href);
    if (fresh !== null && !state.isPaused()) for (const part of parts) replacePart(fresh, part);
    state.say(fresh === null || !isConnected ? NOT_UP_TO_DATE : 'Live');
    refresh(untilNextEndMs(parts));
  });
  refresh(REFRESH_MS);
  state.onResume(() => refresh(0));
  document.addEventListener('visibilitychange', () => refresh(0));
  followEvents({
    types: events.split(',').map((type) => type.trim()),
    // What happened between the server's answer and the stream's beginning, or while there was none.
    opened() {
      isConnected = true;
      refresh(0);
    },
    came: () => refresh(filtered === undefined ? SETTLE_MS : FILTERED_SETTLE_MS),
    lost() {
      isConnected = false;
      state.say(NOT_UP_TO_DATE);
    },
  });
  setInterval(() => {
    if (state.isPaused() || document.hidden) return;
    for (const part of parts) refreshTimes(document.getElementById(part) ?? element);
  }, TICK_MS);
}

/**
 * How long what the parts show holds: no event says that a request is given up.
 * @param {readonly string[]} parts
 */
function untilNextEndMs(parts) {
  const ends = parts.flatMap((part) => {
    const shown = document.getElementById(part)?.querySelectorAll('[data-until]') ?? [];
    return Array.from(shown, (each) => Date.parse(each.getAttribute('data-until') ?? '') - Date.now());
  });
  // The clocks of the two machines may differ a little.
  return Math.max(2_000, Math.min(REFRESH_MS, ...ends.map((ms) => ms + 500)));
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
  let words = place?.textContent ?? '';
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
