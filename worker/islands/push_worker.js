// The service worker: it shows that a request waits, and opens its page. It has no authority, keeps nothing and handles no request of
// a page.

/**
 * @typedef {object} Message
 * @property {unknown} [title]
 * @property {unknown} [path]
 * @property {unknown} [tag]
 */
/** @typedef {Event & { waitUntil: (work: Promise<unknown>) => void }} Extendable */
/** @typedef {Extendable & { data: { json: () => Message } | null }} Pushed */
/** @typedef {Extendable & { notification: Notification }} Clicked */
/** @typedef {{ url: string, focus: () => Promise<unknown>, navigate: (url: string) => Promise<unknown> }} Tab */
/** @typedef {{ matchAll: (which: object) => Promise<readonly Tab[]>, openWindow: (url: string) => Promise<unknown> }} Tabs */
/**
 * @typedef {object} Scope
 * @property {ServiceWorkerRegistration} registration
 * @property {Tabs} clients
 * @property {((type: 'push', task: (event: Pushed) => void) => void) & ((type: 'notificationclick', task: (event: Clicked) => void) => void)} addEventListener
 */

const LIST = '/approvals';
const PAGE = /^\/approvals\/\w{1,64}$/;

/** @type {Scope} */
const scope = Object(globalThis);

scope.addEventListener('push', (push) => {
  push.waitUntil(show(read(push)));
});

scope.addEventListener('notificationclick', (click) => {
  click.notification.close();
  click.waitUntil(open(pathOf(click.notification.data)));
});

/**
 * A browser requires that something is shown, also for a message that cannot be read.
 * @param {Pushed} push
 * @returns {Message}
 */
function read({ data }) {
  try {
    return data?.json() ?? {};
  } catch {
    return {};
  }
}

/** @param {Message} message */
function show({ title, path, tag }) {
  const text = typeof title === 'string' ? title.slice(0, 100) : 'svc has a message';
  const id = typeof tag === 'string' && tag !== '' ? tag.slice(0, 64) : 'svc';
  // What waits again rings again, in place of what is still shown about it.
  const options = { tag: id, renotify: true, data: pathOf(path) };
  return scope.registration.showNotification(text, options);
}

/**
 * Only the page of a request, or the list.
 * @param {unknown} path
 */
function pathOf(path) {
  return typeof path === 'string' && PAGE.test(path) ? path : LIST;
}

/**
 * A page that shows it already is brought to the front.
 * @param {string} path
 */
async function open(path) {
  const all = await scope.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const shown = all.find(({ url }) => new URL(url).pathname === path);
  return shown === undefined ? scope.clients.openWindow(path) : shown.focus();
}
