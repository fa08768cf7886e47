// A form whose answer is shown while the question is typed. The address bar shows the address of the answer.

import { fetchDocument, replacePart } from './refreshed.js';

const PAUSE_MS = 250;

/** @param {HTMLElement} element a form with method GET and `data-answer`, the id of the part that answers */
export function start(element) {
  const { answer } = element.dataset;
  if (!(element instanceof HTMLFormElement) || answer === undefined) return;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let asked = 0;
  const ask = async () => {
    const turn = (asked += 1);
    const url = addressOf(element);
    const fresh = await fetchDocument(url);
    // Ignores a late answer to an earlier question.
    if (fresh === null || turn !== asked) return;
    replacePart(fresh, answer);
    history.replaceState(null, '', url);
  };
  element.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), PAUSE_MS);
  });
}

/** @param {HTMLFormElement} form */
function addressOf(form) {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') query.append(name, value);
  return `${new URL(form.action).pathname}?${query.toString()}`;
}
