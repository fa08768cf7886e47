// Chooses a period of a chart: drag over its bars, or hold Shift and press an arrow key on one.

/** @typedef {{ from: number, to: number }} Bars the first and the last, in the order in which they were chosen */

/**
 * @param {HTMLElement} element a figure with a chart whose `data-begins` and `data-step` are in milliseconds, a `.chosen` area in it
 * and a `.chosen-words`, hidden, that says how to choose; live pages change the chart
 */
export function start(element) {
  const chart = element.querySelector('svg');
  const area = element.querySelector('.chosen');
  const words = element.querySelector('.chosen-words');
  if (chart === null || area === null || !(words instanceof HTMLElement)) return;
  const help = words.textContent;
  words.hidden = false;

  /** @type {Bars | null} */
  let chosen = null;
  const number = (/** @type {string} */ name) => Number(element.dataset[name]);
  const width = () => chart.viewBox.baseVal.width / number('count');
  const timeAt = (/** @type {number} */ bar) => new Date(number('begins') + bar * number('step')).toISOString();
  const ends = (/** @type {Bars} */ { from, to }) => ({
    since: timeAt(Math.min(from, to)),
    until: timeAt(Math.max(from, to) + 1),
  });
  const choose = (/** @type {Bars | null} */ next, how = '') => {
    if (next === null && chosen === null) return;
    chosen = next;
    const first = next === null ? 0 : Math.min(next.from, next.to);
    area.setAttribute('x', String(first * width()));
    area.setAttribute('width', String(next === null ? 0 : (Math.abs(next.to - next.from) + 1) * width()));
    if (next === null) words.textContent = help;
    else words.replaceChildren('From ', written(ends(next).since), ' to ', written(ends(next).until), how);
    words.dispatchEvent(new CustomEvent('svc:shown', { bubbles: true }));
  };
  const show = () => {
    if (chosen === null) return;
    const url = new URL(location.href);
    url.searchParams.delete('cursor');
    for (const [name, time] of Object.entries(ends(chosen))) url.searchParams.set(name, time);
    location.assign(url);
  };
  const barAt = (/** @type {PointerEvent} */ { clientX }) => {
    const { left, width: whole } = chart.getBoundingClientRect();
    return clamp(Math.floor(((clientX - left) / whole) * number('count')), number('count'));
  };
  listenToPointer(chart, { barAt, choose, show });
  // Not of the chart: an SVG element that listens to the focus can be focused itself.
  element.addEventListener('keydown', (event) => {
    const direction = event.key === 'ArrowLeft' ? -1 : 1;
    if (event.shiftKey && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
      event.preventDefault();
      const here = chosen ?? barOf(event.target, width());
      choose({ from: here.from, to: clamp(here.to + direction, number('count')) }, ': Enter shows it.');
    } else if (event.key === 'Enter' && chosen !== null) {
      event.preventDefault();
      show();
    } else if (event.key === 'Escape') choose(null);
  });
  element.addEventListener('focusout', () => choose(null));
  // The bars of a chart that has moved on are of other times.
  new MutationObserver(() => choose(null)).observe(element, {
    attributeFilter: ['data-begins', 'data-step', 'data-count'],
  });
}

/**
 * @param {SVGElement} chart
 * @param {{ barAt: (event: PointerEvent) => number, choose: (next: Bars | null, how?: string) => void, show: () => void }} does
 */
function listenToPointer(chart, { barAt, choose, show }) {
  /** @type {number | null} */
  let from = null;
  let isDragged = false;
  chart.addEventListener('pointerdown', (event) => {
    // A finger or a pen may scroll the page.
    if (event.pointerType === 'mouse' && event.button === 0) from = barAt(event);
    isDragged = false;
  });
  chart.addEventListener('dragstart', (event) => event.preventDefault());
  addEventListener('pointercancel', () => {
    from = null;
  });
  addEventListener('pointermove', (event) => {
    if ((event.buttons & 1) === 0) from = null;
    if (from === null) return;
    const to = barAt(event);
    if (to === from && !isDragged) return;
    isDragged = true;
    choose({ from, to });
  });
  addEventListener('pointerup', () => {
    if (from !== null && isDragged) show();
    from = null;
  });
  // The bar under the pointer is a link.
  chart.addEventListener('click', (event) => isDragged && event.preventDefault());
}

/**
 * @param {EventTarget | null} target a bar
 * @param {number} width
 */
function barOf(target, width) {
  const left = target instanceof Element ? target.querySelector('.hit')?.getAttribute('x') : null;
  const bar = Math.round(Number(left ?? 0) / width);
  return { from: bar, to: bar };
}

/**
 * @param {number} bar
 * @param {number} bars
 */
function clamp(bar, bars) {
  return Math.min(Math.max(bar, 0), bars - 1);
}

/** @param {string} time */
function written(time) {
  const element = document.createElement('time');
  element.dateTime = time;
  element.dataset['written'] = '0 19 zone';
  element.textContent = `${time.slice(0, 19).replace('T', ' ')} UTC`;
  return element;
}
