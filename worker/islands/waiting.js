// How many requests wait for the person's decision, on every page: in the title, the icon and the navigation, and, if the person
// wants that, as a notification. Of the tabs of a browser, one follows the stream and tells the others.

import { fetchDocument } from './refreshed.js';

const SETTLE_MS = 300;
const NAME = 'svc-waiting';

/** @typedef {{ count: number, newest: string }} Waiting */

/** @param {HTMLElement} element has `data-stream` (the stream's address), `data-page` (the list's) and `data-count` */
export function start(element) {
  const { stream, page } = element.dataset;
  if (stream === undefined || page === undefined) return;
  // The event reaches the other tabs of this origin, and no other site.
  addEventListener('storage', ({ key, newValue }) => {
    if (key === NAME) show(element, Number(newValue));
  });
  const tell = (/** @type {Waiting} */ { count, newest }) => {
    notify(Number(element.dataset['count']), count, newest);
    show(element, count);
    localStorage.setItem(NAME, String(count));
  };
  void lead(() => follow(stream, page, tell));
}

/**
 * Runs in one tab at a time; the others wait for their turn. Where a page has no locks, it runs in each tab.
 * @param {() => Promise<void>} act
 */
async function lead(act) {
  if (navigator.locks === undefined) return act();
  await navigator.locks.request(NAME, act);
}

/**
 * Until the page is left.
 * @param {string} stream
 * @param {string} page
 * @param {(waiting: Waiting) => void} tell
 * @returns {Promise<void>}
 */
function follow(stream, page, tell) {
  return new Promise((resolve) => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const source = new EventSource(stream);
    source.addEventListener('audit', () => {
      clearTimeout(timer);
      timer = setTimeout(() => void look(page, tell), SETTLE_MS);
    });
    addEventListener(
      'pagehide',
      () => {
        source.close();
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

/**
 * @param {string} page
 * @param {(waiting: Waiting) => void} tell
 */
async function look(page, tell) {
  const fresh = await fetchDocument(page);
  const found = fresh?.querySelector('[data-count]');
  if (!(fresh !== null && found !== null && found !== undefined)) return;
  const newest = fresh.querySelector('[data-asks]')?.textContent?.trim() ?? '';
  tell({ count: Number(found.getAttribute('data-count')), newest });
}

/**
 * @param {HTMLElement} element
 * @param {number} count
 */
function show(element, count) {
  element.dataset['count'] = String(count);
  const title = document.title.replace(/^\(\d+\) /, '');
  document.title = count > 0 ? `(${count}) ${title}` : title;
  for (const badge of document.querySelectorAll('[data-waiting]')) {
    badge.textContent = count > 0 ? String(count) : '';
  }
  element.textContent = count > 0 ? `${count} waiting for your approval` : '';
  const icon = document.querySelector('link[rel="icon"]');
  if (icon instanceof HTMLLinkElement) {
    icon.href = (count > 0 ? icon.dataset['waiting'] : icon.dataset['calm']) ?? icon.href;
  }
}

/**
 * @param {number} before
 * @param {number} count
 * @param {string} newest
 */
function notify(before, count, newest) {
  if (count <= before || typeof Notification === 'undefined' || Notification.permission !== 'granted') return;
  const shown = new Notification('svc: a request waits for your approval', { body: newest, tag: NAME });
  shown.addEventListener('click', () => {
    window.focus();
    location.assign('/approvals');
  });
}
