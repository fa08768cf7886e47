// Replaces parts of a page with the server's current version. Pages are only rendered on the server.

/**
 * Fetches the document at an address. It is parsed without running its scripts, as trusted types require.
 * @param {string} url
 * @returns {Promise<Document | null>} null if it cannot be fetched
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
 * Replaces the part with this id with that of another document. If the new part has a row with the `data-key` of the focused
 * row, the focused row itself is kept, so that nothing moves under the user's hand. An equal part stays as it is. The event `svc:shown` starts its islands.
 * @param {Document} fresh
 * @param {string} id
 */
export function replacePart(fresh, id) {
  const ours = document.getElementById(id);
  const theirs = fresh.getElementById(id);
  if (ours === null || theirs === null || ours.isEqualNode(theirs)) return;
  const focused = ours.contains(document.activeElement) ? document.activeElement?.closest('[data-key]') : null;
  const row = focused ? theirs.querySelector(rowSelector(focused)) : null;
  if (focused && row !== null) keepFocus(focused, row);
  ours.replaceChildren(...theirs.childNodes);
  ours.dispatchEvent(new CustomEvent('svc:shown', { bubbles: true }));
}

/** @param {Element} row */
function rowSelector(row) {
  return `[data-key="${CSS.escape(row.getAttribute('data-key') ?? '')}"]`;
}

/**
 * Puts the focused row in the place of its new version.
 * @param {Element} same
 * @param {Element} row
 */
function keepFocus(same, row) {
  const focused = document.activeElement;
  row.replaceWith(document.adoptNode(same));
  if (focused instanceof HTMLElement) queueMicrotask(() => focused.focus());
}
