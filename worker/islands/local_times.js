// A switch between UTC and the time of this machine, for every time that the page shows and every time that its forms send.

const NAME = 'svc-local-times';
const EXACT = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/g;

/** @type {HTMLButtonElement[]} */
const switches = [];
let isLocal = false;

/**
 * The texts and inputs in UTC. A local time does not say which one it was: in autumn an hour of the clock comes twice.
 * @type {WeakMap<Element, Map<string, string>>}
 */
const originals = new WeakMap();

/** @param {HTMLElement} element a place for the switch; a page may have several */
export function start(element) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'compact';
  button.textContent = 'Local times';
  button.setAttribute('aria-pressed', String(isLocal));
  button.addEventListener('click', () => {
    localStorage.setItem(NAME, isLocal ? '' : 'on');
    choose(!isLocal);
  });
  element.append(button);
  if (switches.push(button) === 1) begin();
}

function begin() {
  document.addEventListener('formdata', ({ target, formData }) => {
    if (!isLocal || !(target instanceof HTMLFormElement)) return;
    for (const input of inputsOf(target)) formData.set(input.name, utcOf(input));
  });
  document.addEventListener('svc:shown', ({ target }) => {
    if (isLocal && target instanceof Element) showTimes(target);
  });
  if (localStorage.getItem(NAME) !== 'on') return;
  // A browser that reloads a page may have put back a value that was converted already.
  for (const input of inputsOf(document)) input.value = input.defaultValue;
  choose(true);
}

/** @param {boolean} local */
function choose(local) {
  isLocal = local;
  for (const button of switches) button.setAttribute('aria-pressed', String(local));
  for (const input of inputsOf(document)) {
    if (local) {
      keep(input, 'value', input.value);
      input.value = toLocal(input.value);
    } else input.value = utcOf(input);
    for (const label of input.labels ?? []) {
      label.textContent = (label.textContent ?? '').replace(/\((?:UTC|local)\)/, local ? '(local)' : '(UTC)');
    }
  }
  showTimes(document);
}

/** @param {ParentNode} root */
function inputsOf(root) {
  const inputs = [...root.querySelectorAll('input[type="datetime-local"]')];
  return inputs.filter((input) => input instanceof HTMLInputElement);
}

/** @param {string} value in UTC */
function toLocal(value) {
  if (value === '') return '';
  const at = new Date(`${value}Z`);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/**
 * What an input with a local time means: what it was before, unless somebody has changed it.
 * @param {HTMLInputElement} input
 */
function utcOf(input) {
  const before = originals.get(input)?.get('value') ?? '';
  return input.value === toLocal(before) ? before : toUtc(input.value);
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string} text in UTC
 */
function keep(element, name, text) {
  const kept = originals.get(element) ?? new Map();
  originals.set(element, kept.set(name, text));
}

/** @param {string} value */
function toUtc(value) {
  return value === '' ? '' : new Date(value).toISOString().slice(0, 19);
}

/** @param {Element} time */
function textOf(time) {
  const utc = (time.getAttribute('datetime') ?? '').slice(0, 19);
  return isLocal ? toLocal(utc) : utc;
}

/** @param {ParentNode} root */
function showTimes(root) {
  for (const time of root.querySelectorAll('time[datetime][data-written]')) {
    const [from, to, zone] = (time.getAttribute('data-written') ?? '').split(' ');
    const words = textOf(time).slice(Number(from), Number(to)).replace('T', ' ');
    time.textContent = zone === undefined ? words : `${words} ${isLocal ? 'local' : 'UTC'}`;
  }
  for (const named of root.querySelectorAll('time[title], [data-times]')) showNames(named);
  for (const zone of root.querySelectorAll('[data-zone]')) zone.textContent = isLocal ? 'local time' : 'UTC';
  for (const list of root.querySelectorAll('.timeline')) showDays(list);
  for (const link of root.querySelectorAll('a[data-today]')) if (link instanceof HTMLAnchorElement) beginToday(link);
}

/**
 * The exact times in what an element is called.
 * @param {Element} element
 */
function showNames(element) {
  for (const name of ['title', 'aria-label']) {
    const text = element.getAttribute(name);
    if (text !== null) element.setAttribute(name, rewrite(element, name, text));
  }
  const title = element.querySelector(':scope > title');
  if (title !== null) title.textContent = rewrite(title, 'text', title.textContent ?? '');
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string} text as it is shown now: with times in UTC if the page has just brought it
 */
function rewrite(element, name, text) {
  if (text.search(EXACT) >= 0) keep(element, name, text);
  const utc = originals.get(element)?.get(name) ?? text;
  if (!isLocal) return utc;
  return utc.replace(EXACT, (_, day, clock) => `${toLocal(`${day}T${clock}`).replace('T', ' ')} local`);
}

/**
 * The day is written where it begins.
 * @param {Element} list
 */
function showDays(list) {
  for (const old of list.querySelectorAll('.day')) old.remove();
  let before = '';
  for (const time of list.querySelectorAll('li > time')) {
    const day = textOf(time).slice(0, 10);
    if (day === before) continue;
    before = day;
    const heading = document.createElement('li');
    heading.className = 'day';
    heading.textContent = `${day} (${isLocal ? 'local' : 'UTC'})`;
    time.parentElement?.before(heading);
  }
}

/** @param {HTMLAnchorElement} link */
function beginToday(link) {
  const now = new Date();
  const begins = isLocal
    ? new Date(now.getFullYear(), now.getMonth(), now.getDate())
    : new Date(now.toISOString().slice(0, 10));
  const url = new URL(link.href);
  url.searchParams.set('since', begins.toISOString().slice(0, 19));
  link.href = url.href;
}
