// A search with results while typing, and with arrow keys to move through them. The results are those of the form's own page, and
// the address bar shows its address.

import { fetchDocument, replacePart } from './refreshed.js';

const PAUSE_MS = 150;
const RESULTS = 'results';
const FOUND = 'found';

/** @param {HTMLElement} element a form with method GET, above the parts `results` and `found` */
export function start(element) {
  if (!(element instanceof HTMLFormElement)) return;
  const field = element.querySelector('input[type="search"]');
  if (!(field instanceof HTMLInputElement)) return;
  const ask = asker(element);
  element.addEventListener('input', ask);
  // Text was typed before this script was loaded.
  if (field.value !== field.defaultValue) ask();
  document.addEventListener('keydown', (event) => {
    // The dialog that lies over the page has its own keys.
    if (event.defaultPrevented) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (act(event, field, ask)) event.preventDefault();
  });
}

/**
 * Searches a moment after the last change. A late answer to an earlier search is not shown.
 * @param {HTMLFormElement} form
 */
function asker(form) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let asked = 0;
  const answer = async () => {
    const turn = (asked += 1);
    const url = addressOf(form);
    const fresh = await fetchDocument(url);
    if (turn !== asked) return;
    // Not the list: the page of an error, for example.
    if (fresh === null || fresh.getElementById(RESULTS) === null)
      return say('The search got no answer: press Enter to try again');
    replacePart(fresh, RESULTS);
    say(fresh.getElementById(FOUND)?.textContent ?? '');
    history.replaceState(null, '', url);
  };
  return () => {
    clearTimeout(timer);
    timer = setTimeout(() => void answer(), PAUSE_MS);
  };
}

/** @param {string} words */
function say(words) {
  const place = document.getElementById(FOUND);
  if (place !== null && place.textContent !== words) place.textContent = words;
}

/**
 * Handles a key; true if it has a meaning here.
 * @param {KeyboardEvent} event
 * @param {HTMLInputElement} field
 * @param {() => void} ask
 */
function act({ key, target }, field, ask) {
  const links = Array.from(document.querySelectorAll('[data-result]')).filter((each) => each instanceof HTMLElement);
  const at = links.findIndex((link) => link === target);
  const isHere = target === field || at >= 0;
  if (key === '/' && !isTyping(target)) return focus(field);
  if (key === 'Escape' && isHere) {
    field.value = '';
    ask();
    return focus(field);
  }
  if (key === 'ArrowDown' && isHere) return focus(links[at + 1]);
  if (key === 'ArrowUp' && at >= 0) return focus(at === 0 ? field : links[at - 1]);
  return false;
}

/** @param {HTMLElement | undefined} element */
function focus(element) {
  if (element === undefined) return false;
  element.focus();
  if (element instanceof HTMLInputElement) element.select();
  return true;
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && target.matches('input, select, textarea, [contenteditable]');
}

/**
 * The address of a search with the form's non-empty fields. It has no cursor: a new search begins at its first page.
 * @param {HTMLFormElement} form
 */
function addressOf(form) {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (typeof value === 'string' && value !== '') query.append(name, value);
  }
  const path = new URL(form.action).pathname;
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}
