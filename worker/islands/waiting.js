// How many requests wait for the person's decision, on every page: in the title, the icon and the navigation, and, if the person
// wants that, as a notification. Of the tabs of a browser, one follows the stream and tells the others. A page also says when the
// person is signed out.

import { fetchDocument, makePlan } from './refreshed.js';
import { followStream } from './stream.js';

const SETTLE_MS = 300;
const NAME = 'svc-waiting';
const LIST = '/approvals';

/**
 * What the tabs know. `ends`: until when the agent of each request waits, by the key of its card; empty if none waits any more.
 * `news`: a request of which nobody was told before.
 * @typedef {{ count: number, ends: Record<string, string>, news: News | null, isSignedOut: boolean }} Waiting
 * @typedef {{ key: string, line: string }} News
 */

/** @param {HTMLElement} element has `data-stream` (the stream's address) and `data-count` */
export function start(element) {
  const { stream } = element.dataset;
  if (stream === undefined) return;
  // The event reaches the other tabs of this origin, and no other site.
  addEventListener('storage', ({ key }) => {
    const told = key === NAME ? readTold() : null;
    if (told === null) return;
    showSignedOut(told.isSignedOut);
    if (!told.isSignedOut) show(element, told.count);
    // It takes the place of the same one of the tab that follows, and a click leads to the tab that made it.
    if (told.news !== null && location.pathname === LIST) notify(told.news);
  });
  document.addEventListener('svc:signed-out', () => showSignedOut(true));
  document.addEventListener('svc:signed-in', () => showSignedOut(false));
  const act = () => follow(stream, element);
  void lead(act);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) void lead(act);
  });
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
 * @param {HTMLElement} element
 * @returns {Promise<void>}
 */
function follow(stream, element) {
  return new Promise((resolve) => {
    const look = makePlan(async () => {
      const waiting = await readList();
      if (waiting === null) return;
      show(element, waiting.count);
      if (waiting.news !== null) notify(waiting.news);
      tell(waiting);
    });
    document.addEventListener('svc:signed-out', tellSignedOut);
    followStream(stream, {
      isForOthers: true,
      opened: () => look(SETTLE_MS),
      came: () => look(SETTLE_MS),
      lost() {},
    });
    const leave = () => {
      document.removeEventListener('svc:signed-out', tellSignedOut);
      resolve();
    };
    addEventListener('pagehide', leave, { once: true });
  });
}

/** @returns {Promise<Waiting | null>} null if the list cannot be read */
async function readList() {
  const fresh = await fetchDocument(LIST);
  const count = fresh?.querySelector('[data-count]')?.getAttribute('data-count');
  if (fresh === null || count === null || count === undefined) return null;
  const cards = Array.from(fresh.querySelectorAll('.card[data-key]'), (card) => ({
    key: card.getAttribute('data-key') ?? '',
    line: card.querySelector('[data-asks]')?.textContent?.trim() ?? '',
    until: card.querySelector('[data-until]')?.getAttribute('data-until') ?? '',
    seconds: Number(card.querySelector('[data-seconds]')?.getAttribute('data-seconds')),
  }));
  const before = readTold();
  // A browser that knows nothing yet shows the count alone.
  const isNews = (/** @type {typeof cards[number]} */ { key, until, seconds }) => {
    const last = before?.ends[key];
    if (before === null || last === undefined) return before !== null;
    // It was given up, and its agent waits again.
    return until !== '' && (last === '' || Date.parse(until) - seconds * 1000 >= Date.parse(last));
  };
  const news = cards.filter(isNews);
  const [newest] = [...news.filter(({ until }) => until === ''), ...news.filter(({ until }) => until !== '')].slice(-1);
  return {
    count: Number(count),
    ends: Object.fromEntries(cards.map(({ key, until }) => [key, until])),
    news: newest === undefined ? null : { key: newest.key, line: newest.line },
    isSignedOut: false,
  };
}

/** @returns {Waiting | null} null if no tab has said anything yet */
function readTold() {
  const told = JSON.parse(localStorage.getItem(NAME) ?? 'null');
  // An earlier version of this script left a number.
  return typeof told === 'object' ? told : null;
}

function tellSignedOut() {
  const told = readTold();
  if (told !== null) tell({ ...told, news: null, isSignedOut: true });
}

/** @param {Waiting} waiting */
function tell(waiting) {
  localStorage.setItem(NAME, JSON.stringify(waiting));
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

/** @param {boolean} isSignedOut */
function showSignedOut(isSignedOut) {
  const shown = document.getElementById('signed-out');
  if (!isSignedOut) shown?.remove();
  if (!isSignedOut || shown !== null) return;
  const link = document.createElement('a');
  link.href = location.pathname + location.search;
  link.textContent = 'Sign in';
  const message = document.createElement('div');
  message.id = 'signed-out';
  message.className = 'alert warn';
  message.setAttribute('role', 'alert');
  message.append('You are signed out: this page is no longer brought up to date. ', link);
  document.querySelector('main .page')?.prepend(message);
}

/** @param {News} news */
function notify({ key, line }) {
  if (typeof Notification === 'undefined' || Notification.permission !== 'granted') return;
  const shown = new Notification('svc: a request waits for your approval', { body: line, tag: `${NAME}-${key}` });
  shown.addEventListener('click', () => {
    shown.close();
    // What is typed on another page stays.
    if (location.pathname === LIST || window.open(LIST) === null) window.focus();
  });
}
