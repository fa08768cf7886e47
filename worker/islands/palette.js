// The search for everything: on its own page, and on every other page in a dialog that Ctrl-K opens. The server renders both.

import { fetchDocument, replacePart } from './refreshed.js';

const PAUSE_MS = 120;
const PATH = '/find';

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
  const dialog = document.querySelector('dialog.palette-box');
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
  const field = document.getElementById('palette-q');
  if (!(field instanceof HTMLInputElement)) return;
  field.focus();
  field.select();
}

function addDialog() {
  const part = document.getElementById('palette-part');
  if (!(part instanceof HTMLTemplateElement)) return location.assign(PATH);
  const dialog = document.createElement('dialog');
  dialog.className = 'palette-box';
  dialog.setAttribute('aria-label', 'Find');
  dialog.append(part.content.cloneNode(true));
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog) dialog.close();
  });
  // A search field would only be emptied.
  dialog.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    dialog.close();
  });
  document.body.append(dialog);
  const form = dialog.querySelector('form');
  if (form !== null) searchIn(form);
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
    const status = document.getElementById('palette-found');
    if (fresh !== null) replacePart(fresh, 'palette-results');
    if (fresh !== null) shown = text;
    if (status !== null) {
      status.textContent = fresh?.getElementById('palette-found')?.textContent ?? 'No answer: press Enter to try again';
    }
  };
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), PAUSE_MS);
  });
  if (shown === null) void ask();
  const openFirst = async () => {
    if (shown !== field.value) await ask();
    links()[0]?.click();
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
  return Array.from(document.querySelectorAll('#palette-results a')).filter((link) => link instanceof HTMLElement);
}
