// A form whose answer is shown while the question is typed. The address bar shows the address of the answer.

import { fetchDocument, replacePart } from './refreshed.js';

const PAUSE_MS = 250;

/**
 * @param {HTMLElement} element a form with `data-answer`, the id of the part that answers. It has the method GET; or `data-ask` is
 * the address that answers, `data-fields` names what is sent there, and `data-begins` (`name=text`) what a field has to begin with.
 */
export function start(element) {
  const { answer } = element.dataset;
  if (!(element instanceof HTMLFormElement) || answer === undefined) return;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let asked = 0;
  const ask = async () => {
    const turn = (asked += 1);
    const url = addressOf(element);
    if (url === null) return document.getElementById(answer)?.replaceChildren();
    const fresh = await fetchDocument(url);
    // Ignores a late answer to an earlier question.
    if (fresh === null || turn !== asked) return;
    replacePart(fresh, answer);
    if (element.dataset['ask'] === undefined) history.replaceState(null, '', url);
  };
  element.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), PAUSE_MS);
  });
}

/**
 * The address of the answer; null if a field does not begin as it has to.
 * @param {HTMLFormElement} form
 */
function addressOf(form) {
  const { ask, fields, begins = '' } = form.dataset;
  const url = new URL(ask ?? new URL(form.action).pathname, location.href);
  const names = fields?.split(' ');
  const [name = '', beginning = ''] = begins.split('=');
  for (const [key, value] of new FormData(form)) {
    if (typeof value !== 'string' || names?.includes(key) === false) continue;
    if (key === name && !value.startsWith(beginning)) return null;
    url.searchParams.append(key, value);
  }
  return url.pathname + url.search;
}
