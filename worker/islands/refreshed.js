// Brings parts of a page up to date with the server's current version. Pages are only rendered on the server.

const LONGEST_MS = 30_000;

/**
 * The id of the user that a page was made for; null if it was made for a visitor. A person has another one in each enterprise.
 * @param {Document} page
 */
export function userOf(page) {
  return page.querySelector('[data-user]')?.getAttribute('data-user') ?? null;
}

/**
 * Fetches the document at an address. It is parsed without running its scripts, as trusted types require. The event
 * `svc:signed-out` says that the page's user is signed out, with `other` if another user is signed in now; `svc:signed-in` says
 * that the user is signed in.
 * @param {string} url
 * @returns {Promise<Document | null>} null if it cannot be fetched, or if it was made for another user
 */
export function fetchDocument(url) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', url);
    request.responseType = 'document';
    request.timeout = LONGEST_MS;
    request.addEventListener('load', () => {
      const fresh = request.status < 500 && request.status !== 401 ? request.responseXML : null;
      const [ours, theirs] = [userOf(document), fresh && userOf(fresh)];
      // Some pages are also shown to those who are not signed in.
      const isOther = ours !== null && theirs !== null && theirs !== ours;
      if (request.status === 401) document.dispatchEvent(new CustomEvent('svc:signed-out'));
      else if (isOther) document.dispatchEvent(new CustomEvent('svc:signed-out', { detail: 'other' }));
      else if (theirs !== null) document.dispatchEvent(new CustomEvent('svc:signed-in'));
      resolve(isOther ? null : fresh);
    });
    for (const failed of ['error', 'timeout']) request.addEventListener(failed, () => resolve(null));
    request.send();
  });
}

/**
 * Acts at the earliest of the planned times, once at a time, so an older answer never replaces a newer one.
 * @param {() => Promise<void>} act
 * @returns {(afterMs: number) => void}
 */
export function makePlan(act) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let dueMs = Infinity;
  let isActing = false;
  const wait = () => {
    clearTimeout(timer);
    if (!isActing && dueMs !== Infinity) timer = setTimeout(() => void run(), dueMs - Date.now());
  };
  const run = async () => {
    dueMs = Infinity;
    isActing = true;
    try {
      await act();
    } finally {
      isActing = false;
      wait();
    }
  };
  return (afterMs) => {
    dueMs = Math.min(dueMs, Date.now() + afterMs);
    wait();
  };
}

/**
 * Makes the part with this id like that of another document. What both have stays the same element, with the focus, what is open
 * and what is typed in it. The event `svc:shown` starts the islands of what is new.
 *
 * Elements are the same if they have the same tag and the same `data-key` or id; without one, the next with that tag is. An
 * element with `data-own` belongs to a script: while the value is the same, it stays as the script made it.
 * @param {Document} fresh
 * @param {string} id
 */
export function replacePart(fresh, id) {
  const ours = document.getElementById(id);
  const theirs = fresh.getElementById(id);
  if (ours === null || theirs === null || ours.isEqualNode(theirs)) return;
  const focused = document.activeElement;
  mergeChildren(ours, theirs);
  keepFocus(focused);
  ours.dispatchEvent(new CustomEvent('svc:shown', { bubbles: true }));
}

/**
 * Browsers drop the focus of an element that is moved. One that is new in its place is known by its id.
 * @param {Element | null} focused
 */
function keepFocus(focused) {
  if (focused === null || focused === document.activeElement) return;
  const same = focused.isConnected || focused.id === '' ? focused : document.getElementById(focused.id);
  if (same instanceof HTMLElement) same.focus({ preventScroll: true });
}

/**
 * @param {Element} ours
 * @param {Element} theirs
 */
function merge(ours, theirs) {
  if (ours.hasAttribute('data-own')) return;
  for (const { name, value } of theirs.attributes) {
    // What is open is the person's choice.
    if (name !== 'open' && ours.getAttribute(name) !== value) ours.setAttribute(name, value);
  }
  for (const name of ours.getAttributeNames()) {
    if (name !== 'open' && !theirs.hasAttribute(name)) ours.removeAttribute(name);
  }
  mergeChildren(ours, theirs);
}

/**
 * @param {Element} ours
 * @param {Element} theirs
 */
function mergeChildren(ours, theirs) {
  const wanted = new Set(Array.from(theirs.children, keyOf));
  const unwanted = Array.from(ours.children).filter((child) => keyOf(child) !== null && !wanted.has(keyOf(child)));
  for (const child of unwanted) child.remove();
  let at = ours.firstChild;
  const nodes = [...theirs.childNodes];
  for (const node of nodes) {
    const same = findSame(at, node);
    if (same === null) {
      ours.insertBefore(document.adoptNode(node), at);
      continue;
    }
    // What has a key and lies between is wanted further on.
    while (at !== null && at !== same && keyOf(at) === null) at = removeNode(at);
    if (at === same) at = same.nextSibling;
    else ours.insertBefore(same, at);
    if (same instanceof Element && node instanceof Element) merge(same, node);
    else if (same.nodeValue !== node.nodeValue) same.nodeValue = node.nodeValue;
  }
  while (at !== null) at = removeNode(at);
}

/**
 * The node, from one of our nodes on, that is the same as another document's; null if there is none.
 * @param {ChildNode | null} from
 * @param {ChildNode} node
 */
function findSame(from, node) {
  if (!(node instanceof Element)) return from?.nodeType === node.nodeType ? from : null;
  for (let each = from; each !== null; each = each.nextSibling) {
    if (!(each instanceof Element) || each.tagName !== node.tagName || keyOf(each) !== keyOf(node)) continue;
    if (each.getAttribute('data-own') === node.getAttribute('data-own')) return each;
  }
  return null;
}

/** @param {Node} node */
function keyOf(node) {
  return node instanceof Element ? (node.getAttribute('data-key') ?? node.getAttribute('id')) : null;
}

/** @param {ChildNode} node */
function removeNode(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}
