// Looks at a page from inside, for the walks. It runs before anything of the page does, in every document.

/**
 * What has the focus: its place among the stops of Tab, or -1, and what is wrong with how it is shown, or nothing.
 * @typedef {{ place: number, name: string, wrong: string }} Focused
 */

/** @type {string[]} */
const violations = [];
addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI, sourceFile, lineNumber }) =>
  violations.push(`${effectiveDirective} ${blockedURI} ${sourceFile}:${lineNumber}`),
);

/** @typedef {HTMLElement | SVGElement} Focusable */

/** @type {Focusable[]} */
let stops = [];

/** @type {Focused[]} */
let seen = [];
// Before the key moves the focus.
addEventListener('keydown', () => seen.push(focused()), true);

/** What had the focus at each key that was pressed since the last time, or since a stop was given the focus. */
function takeSeen() {
  return seen.splice(0);
}

/** Whether every stop is still on the page. */
function haveStopsStayed() {
  return stops.every((each) => each.isConnected);
}

/** Whether the islands have added what they add. */
function isStarted() {
  return [...document.querySelectorAll('[data-island=copy]')].every((each) => each.querySelector('button') !== null);
}

/** Everything that Tab has to reach, in the order of the document; how many there are. */
function listStops() {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, iframe, [tabindex]');
  stops = [...all].filter((each) => isFocusable(each)).filter((each) => isStop(each));
  return stops.length;
}

/** The places of the fields for a time among the stops. */
function listTimeStops() {
  return stops.flatMap((each, place) => (each.matches('input[type=datetime-local], input[type=date]') ? [place] : []));
}

/**
 * @param {Element | null} element
 * @returns {element is Focusable}
 */
function isFocusable(element) {
  return element instanceof HTMLElement || element instanceof SVGElement;
}

/** @param {Focusable} element */
function isStop(element) {
  if (element.tabIndex < 0 || element.matches(':disabled') || !element.checkVisibility({ visibilityProperty: true }))
    return false;
  return !(element instanceof HTMLInputElement && element.type === 'radio') || isOfGroup(element);
}

/**
 * Of radio buttons with one name, Tab reaches the one that is chosen, or the first.
 * @param {HTMLInputElement} radio
 */
function isOfGroup(radio) {
  const group = [...document.querySelectorAll('input[type=radio]')]
    .filter((each) => each instanceof HTMLInputElement)
    .filter(({ name, form }) => name === radio.name && form === radio.form);
  return radio === (group.find(({ checked }) => checked) ?? group[0]);
}

/**
 * Puts the focus on a stop, as the keyboard does.
 * @param {number} place
 */
function focusStop(place) {
  stops[place]?.focus();
  seen = [];
}

/** The place of the first stop in `main`; 0 when there is none. */
function firstInMain() {
  return Math.max(
    0,
    stops.findIndex((each) => each.closest('main') !== null),
  );
}

/** @returns {Focused} */
function focused() {
  const element = document.activeElement;
  if (!isFocusable(element)) return { place: -1, name: 'nothing', wrong: '' };
  const place = stops.indexOf(element);
  return { place, name: nameOf(element), wrong: place < 0 ? '' : problemOf(element) };
}

/** @param {Element} element */
function nameOf(element) {
  const text = element.getAttribute('aria-label') ?? element.id ?? '';
  return `${element.tagName.toLowerCase()} ${text === '' ? (element.textContent ?? '') : text}`
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, 60);
}

/** @param {Focusable} element */
function problemOf(element) {
  const [box] = element.getClientRects();
  if (box === undefined || box.width < 1 || box.height < 1) return 'takes no room';
  // Of a field that is higher than the room below it, what is in the window counts.
  const [left, top] = [Math.max(0, box.left), Math.max(0, box.top)];
  const [right, bottom] = [Math.min(innerWidth, box.right), Math.min(innerHeight, box.bottom)];
  if (right - left < 1 || bottom - top < 1) return 'is not in the window';
  const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  if (above !== null && !above.contains(element) && !element.contains(above)) return `is under ${nameOf(above)}`;
  return hasRing(element) ? '' : 'does not show that it has the focus';
}

/**
 * A line around it or around what it stands in; in a drawing, one around a part of it.
 * @param {Focusable} element
 */
function hasRing(element) {
  if (element instanceof SVGElement && [...element.querySelectorAll('*')].some((each) => hasStroke(each))) return true;
  for (let each = /** @type {Element | null} */ (element); each !== null; each = each.parentElement) {
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(each);
    if (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && !/, 0\)$|transparent/.test(outlineColor))
      return true;
  }
  return false;
}

/** @param {Element} element */
function hasStroke(element) {
  const { stroke, strokeWidth } = getComputedStyle(element);
  return stroke !== 'none' && parseFloat(strokeWidth) >= 2;
}

/** What moves, though somebody asked for little of that. */
function moving() {
  return [...document.querySelectorAll('*')].filter(isMoving).map((each) => nameOf(each));
}

/** @param {Element} element */
function isMoving(element) {
  const { animationName, transitionDuration, scrollBehavior } = getComputedStyle(element);
  return animationName !== 'none' || /[1-9]/.test(transitionDuration) || scrollBehavior === 'smooth';
}

/** What is wider than its place: the window, or an element that cuts it off. */
function cutOff() {
  const root = document.documentElement;
  const wide = root.scrollWidth > root.clientWidth ? [`the page, by ${root.scrollWidth - root.clientWidth} px`] : [];
  return [...wide, ...[...document.body.querySelectorAll('*')].filter(isCut).map((each) => nameOf(each))];
}

/**
 * What is there for screen readers alone is one pixel wide, and cut off for a reason.
 * @param {Element} element
 */
function isCut(element) {
  const { clientWidth, scrollWidth } = element;
  return clientWidth > 1 && scrollWidth > clientWidth + 1 && /hidden|clip/.test(getComputedStyle(element).overflowX);
}

Object.assign(globalThis, {
  probe: {
    violations,
    isStarted,
    listStops,
    listTimeStops,
    focusStop,
    firstInMain,
    focused,
    takeSeen,
    haveStopsStayed,
    moving,
    cutOff,
  },
});
