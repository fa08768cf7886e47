// The card of a request that waits for a decision: how long its agent still waits, and keys for the two answers.

const TICK_MS = 1_000;

/**
 * @param {HTMLElement} element has two buttons with `data-press`, a key. A `[data-until]` in it is the time that runs out, and its
 * `data-over` the words for afterwards.
 */
export function start(element) {
  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    // In a field the keys are its own.
    if (event.target instanceof HTMLSelectElement) return;
    const button = element.querySelector(`button[data-press="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!(button instanceof HTMLButtonElement)) return;
    event.preventDefault();
    button.click();
  });
  const ring = element.querySelector('[data-until]');
  if (!(ring instanceof HTMLElement)) return;
  const tick = () => {
    if (!element.isConnected) return clearInterval(ticking);
    show(ring);
  };
  const ticking = setInterval(tick, TICK_MS);
  tick();
}

/** @param {HTMLElement} ring */
function show(ring) {
  const { until = '', seconds = '60', over = '' } = ring.dataset;
  const left = Math.max(0, Math.ceil((Date.parse(until) - Date.now()) / 1000));
  ring.style.setProperty('--left', String(Math.min(1, left / Number(seconds))));
  const words = left > 0 ? `${left} s` : over;
  if (ring.textContent !== words) ring.textContent = words;
}
