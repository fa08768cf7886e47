// A switch between UTC and the time of this machine, for the times that a form sends and the exact times of the page.

const NAME = 'svc-local-times';

/** @param {HTMLElement} element a form with inputs for points in time in UTC, and a `[data-times]` for the switch */
export function start(element) {
  const place = element.querySelector('[data-times]');
  if (!(element instanceof HTMLFormElement) || place === null) return;
  const inputs = [...element.querySelectorAll('input[type="datetime-local"]')].filter(
    (input) => input instanceof HTMLInputElement,
  );
  let isLocal = false;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'compact';
  button.textContent = 'Local times';
  button.setAttribute('aria-pressed', 'false');
  const show = (/** @type {boolean} */ local) => {
    if (local !== isLocal) for (const input of inputs) input.value = local ? toLocal(input.value) : toUtc(input.value);
    isLocal = local;
    button.setAttribute('aria-pressed', String(local));
    for (const label of element.querySelectorAll('label')) {
      label.textContent = (label.textContent ?? '').replace(/\((?:UTC|local)\)/, local ? '(local)' : '(UTC)');
    }
    showTitles(document, local);
  };
  button.addEventListener('click', () => {
    localStorage.setItem(NAME, isLocal ? '' : 'on');
    show(!isLocal);
  });
  element.addEventListener('formdata', ({ formData }) => {
    if (isLocal) for (const { name, value } of inputs) formData.set(name, toUtc(value));
  });
  document.addEventListener('svc:shown', ({ target }) => {
    if (target instanceof Element) showTitles(target, isLocal);
  });
  place.append(button);
  if (localStorage.getItem(NAME) === 'on') show(true);
}

/** @param {string} value */
function toLocal(value) {
  if (value === '') return '';
  const at = new Date(`${value}Z`);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** @param {string} value */
function toUtc(value) {
  return value === '' ? '' : new Date(value).toISOString().slice(0, 19);
}

/**
 * @param {ParentNode} root
 * @param {boolean} isLocal
 */
function showTitles(root, isLocal) {
  for (const time of root.querySelectorAll('time[datetime][title]')) {
    const at = time.getAttribute('datetime') ?? '';
    const exact = isLocal ? new Date(at).toLocaleString() : `${at.slice(0, 19).replace('T', ' ')} UTC`;
    time.setAttribute('title', exact);
  }
}
