// A switch between UTC and the time of this machine, for every time that the page shows and every time that its forms send.

const NAME = 'svc-local-times';
const EXACT = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (UTC|local)/g;

/** @type {HTMLButtonElement[]} */
const switches = [];
let isLocal = false;

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
    for (const { name, value } of inputsOf(target)) formData.set(name, toUtc(value));
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
    input.value = local ? toLocal(input.value) : toUtc(input.value);
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
    if (text !== null) element.setAttribute(name, rewrite(text));
  }
  const title = element.querySelector(':scope > title');
  if (title !== null) title.textContent = rewrite(title.textContent ?? '');
}

/** @param {string} text */
function rewrite(text) {
  return text.replace(EXACT, (whole, day, clock, zone) => {
    if ((zone === 'local') === isLocal) return whole;
    const time = `${day}T${clock}`;
    return `${(isLocal ? toLocal(time) : toUtc(time)).replace('T', ' ')} ${isLocal ? 'local' : 'UTC'}`;
  });
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
