// A decision of the person in a list that changes by itself: only about what was at its place long enough to be seen. The card of
// a request also shows how long its agent still waits, and has keys for the two answers.

const TICK_MS = 1_000;
const STEADY_MS = 500;
const REPEATED_MS = 3_000;
const SAID_MS = 5_000;
const MOVED = 'The list has just changed: look again, and press once more.';

/**
 * @param {HTMLElement} element a form; or a card with forms, and buttons with `data-press`, a key. A `[data-until]` in it is the
 * time that runs out, and its `data-over` the words for afterwards.
 * @param {boolean} isAdded
 */
export function start(element, isAdded) {
  const isSteady = watchPlace(element);
  let sentMs = -Infinity;
  element.addEventListener('submit', (event) => {
    const isRepeated = performance.now() - sentMs < REPEATED_MS;
    if (!isRepeated && isSteady()) {
      sentMs = performance.now();
      return;
    }
    event.preventDefault();
    if (!isRepeated && event.target instanceof HTMLElement) say(event.target);
  });
  if (!element.classList.contains('card')) return;
  element.addEventListener('keydown', (event) => press(element, event));
  const tick = () => {
    if (!element.isConnected) return clearInterval(ticking);
    const ring = element.querySelector('[data-until]');
    if (ring instanceof HTMLElement) show(ring);
  };
  const ticking = setInterval(tick, TICK_MS);
  tick();
  if (!isAdded) focusFirst(element);
}

/** @param {HTMLElement} form */
function say(form) {
  const said = document.createElement('span');
  said.className = 'small';
  said.setAttribute('role', 'alert');
  said.textContent = MOVED;
  form.append(said);
  setTimeout(() => said.remove(), SAID_MS);
}

/**
 * Whether the element was at its place for long enough, however the page has changed around it. A page that was just opened counts
 * too: the next request is where the one before was, and a second press would be about it.
 * @param {HTMLElement} element
 */
function watchPlace(element) {
  let top = placeOf(element);
  let sinceMs = performance.now();
  const look = () => {
    if (!element.isConnected) {
      sizes.disconnect();
      document.removeEventListener('svc:shown', look);
      return;
    }
    const now = placeOf(element);
    if (Math.abs(now - top) > 1) sinceMs = performance.now();
    top = now;
  };
  const sizes = new ResizeObserver(look);
  sizes.observe(element.closest('.page') ?? document.body);
  document.addEventListener('svc:shown', look);
  return () => {
    look();
    return performance.now() - sinceMs >= STEADY_MS;
  };
}

/** @param {HTMLElement} element */
function placeOf(element) {
  return element.getBoundingClientRect().top + scrollY;
}

/**
 * @param {HTMLElement} card
 * @param {KeyboardEvent} event
 */
function press(card, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  // In a field the keys are its own.
  if (event.target instanceof HTMLSelectElement) return;
  const button = card.querySelector(`button[data-press="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!(button instanceof HTMLButtonElement)) return;
  event.preventDefault();
  button.click();
}

/**
 * The keys act on the request that waits longest as soon as the page is opened, and on no other: a key for the whole page would
 * decide about whatever is on it by then.
 * @param {HTMLElement} card
 */
function focusFirst(card) {
  if (document.activeElement !== document.body || location.hash !== '') return;
  if (card === document.querySelector('.card.held')) card.focus({ preventScroll: true });
}

/** @param {HTMLElement} ring */
function show(ring) {
  const { until = '', seconds = '60', over = '' } = ring.dataset;
  const left = Math.max(0, Math.ceil((Date.parse(until) - Date.now()) / 1000));
  ring.style.setProperty('--left', String(Math.min(1, left / Number(seconds))));
  const words = left > 0 ? `${left} s` : over;
  if (ring.textContent !== words) ring.textContent = words;
}
