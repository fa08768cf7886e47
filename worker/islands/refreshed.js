// Parts of a page as the server shows them now. What a page says is written once, on the server.

/**
 * The document at an address. A browser parses it without running anything of it, and trusted types allow that.
 * @param {string} url
 * @returns {Promise<Document | null>} null when it cannot be had
 */
export function fetchDocument(url) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', url);
    request.responseType = 'document';
    const isGood = () => request.status < 500 && request.status !== 401;
    request.addEventListener('load', () => resolve(isGood() ? request.responseXML : null));
    request.addEventListener('error', () => resolve(null));
    request.send();
  });
}

/**
 * Puts the part with this id of another document in the place of ours. The row that has the focus stays as it is while there
 * is one with its `data-key`, so that nothing is taken from under a hand. Islands in it start with the event `svc:shown`.
 * @param {Document} fresh
 * @param {string} id
 */
export function replacePart(fresh, id) {
  const ours = document.getElementById(id);
  const theirs = fresh.getElementById(id);
  if (ours === null || theirs === null) return;
  for (const row of theirs.querySelectorAll('[data-key]')) {
    const same = ours.querySelector(rowSelector(row));
    if (same !== null && same.contains(document.activeElement)) keepFocus(same, row);
  }
  ours.replaceChildren(...theirs.childNodes);
  ours.dispatchEvent(new CustomEvent('svc:shown', { bubbles: true }));
}

/** @param {Element} row */
function rowSelector(row) {
  return `[data-key="${CSS.escape(row.getAttribute('data-key') ?? '')}"]`;
}

/**
 * The focused row as it is takes the place of its fresh twin.
 * @param {Element} same
 * @param {Element} row
 */
function keepFocus(same, row) {
  const focused = document.activeElement;
  row.replaceWith(document.adoptNode(same));
  if (focused instanceof HTMLElement) queueMicrotask(() => focused.focus());
}
