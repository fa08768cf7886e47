// The search for everything: on its own page, and in a dialog that Ctrl-K opens on the others. The server renders both.

import { fetchDocument, replacePart } from './refreshed.js';

const PAUSE_MS = 120;
const PATH = '/find';

/** @type {Element | null} */
let before = null;

/** @param {HTMLElement} element the form of the page, or a link to the page */
export function start(element) {
  if (element instanceof HTMLFormElement) return searchIn(element);
  element.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  // The link is on a page once for each width.
  if (document.documentElement.dataset['palette'] === 'on') return;
  document.documentElement.dataset['palette'] = 'on';
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
}

/** Shows the search. The person can type at once: the results come with the answer of the server. */
function open() {
  if (document.getElementById('palette-q') === null) addDialog();
  const dialog = boxOf();
  if (dialog !== null && !dialog.matches(':popover-open')) {
    before = document.activeElement;
    dialog.showPopover();
  }
  const field = document.getElementById('palette-q');
  if (!(field instanceof HTMLInputElement)) return;
  field.focus();
  field.select();
}

/** @returns {HTMLElement | null} */
function boxOf() {
  return document.querySelector('.palette-box');
}

/** @param {HTMLElement} dialog */
function close(dialog) {
  dialog.hidePopover();
  if (before instanceof HTMLElement) before.focus();
}

function addDialog() {
  const part = document.getElementById('palette-part');
  if (!(part instanceof HTMLTemplateElement)) return;
  document.body.append(part.content);
  const dialog = boxOf();
  if (dialog === null) return;
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog) close(dialog);
  });
  dialog.addEventListener('keydown', (event) => {
    // The page below has keys of its own.
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
    // A search field would only be emptied.
    if (event.key === 'Escape') close(dialog);
    else if (event.key !== 'Tab' || !leaves(dialog, event)) return;
    event.preventDefault();
  });
  const form = dialog.querySelector('form');
  if (form !== null) searchIn(form);
}

/**
 * Goes from the last element to the first, and back; false if Tab does not leave the dialog.
 * @param {HTMLElement} dialog
 * @param {KeyboardEvent} event
 */
function leaves(dialog, event) {
  /** @type {NodeListOf<HTMLElement>} */
  const all = dialog.querySelectorAll('input, button, a');
  const [first, last] = [all[0], all[all.length - 1]];
  const [from, to] = event.shiftKey ? [first, last] : [last, first];
  if (document.activeElement !== from && document.activeElement !== dialog) return false;
  to?.focus();
  return true;
}

/** @param {HTMLFormElement} form */
function searchIn(form) {
  const field = form.querySelector('input');
  if (field === null) return;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let asked = 0;
  /** The text that the results are of; null if there are none. */
  let shown = links().length > 0 ? field.value : null;
  const ask = async () => {
    clearTimeout(timer);
    const turn = (asked += 1);
    const text = field.value;
    const fresh = await fetchDocument(`${PATH}?q=${encodeURIComponent(text)}`);
    if (turn !== asked) return;
    const words = fresh?.getElementById('palette-found')?.textContent ?? null;
    if (fresh !== null && words !== null) {
      const focused = document.activeElement;
      replacePart(fresh, 'palette-results');
      // Otherwise the page below would get the keys.
      if (focused?.isConnected === false) field.focus();
      shown = text;
    }
    const status = document.getElementById('palette-found');
    if (status !== null) status.textContent = words ?? 'No answer: press Enter to try again';
  };
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), PAUSE_MS);
  });
  if (shown === null) void ask();
  const openFirst = async () => {
    if (shown !== field.value) await ask();
    // Not a result for an earlier text, and nothing once the dialog is closed.
    if (shown === field.value && form.checkVisibility()) links()[0]?.click();
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void openFirst();
  });
  form.parentElement?.addEventListener('keydown', (event) => {
    const all = links();
    const at = all.findIndex((link) => link === event.target);
    const to = event.key === 'ArrowDown' ? at + 1 : event.key === 'ArrowUp' ? at - 1 : -2;
    if (to === -2 || to >= all.length) return;
    event.preventDefault();
    (all[to] ?? field).focus();
  });
}

/** @returns {HTMLElement[]} */
function links() {
  const all = document.querySelectorAll('#palette-results [data-result]');
  return Array.from(all).filter((link) => link instanceof HTMLElement);
}
