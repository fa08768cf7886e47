// How many requests wait for the person's decision, on every page: in the title, the icon and the navigation, and, if the person
// wants that, as a notification. The tab that follows the stream asks and tells the others. A page also says when the person is signed out.

import { fetchDocument, makePlan, userOf } from './refreshed.js';
import { followEvents, isLeading } from './stream.js';

const SETTLE_MS = 300;
const NAME = `svc-waiting ${userOf(document) ?? ''}`;
const LIST = '/approvals';
const SIGN_OUT = '/auth/logout';

/**
 * What the tabs tell each other. `news`: a request of which nobody was told before.
 * @typedef {{ count: number, news: News | null }} Waiting
 * @typedef {{ key: string, line: string }} News
 */
/**
 * What the browser keeps until the person signs out: until when the agent of each request waits, by the key of its card; empty if
 * none waits any more. It has no text of a request.
 * @typedef {Record<string, string>} Ends
 */

/** @type {BroadcastChannel | null} */
let channel = null;

/** @param {HTMLElement} element has `data-events` (how the types of its events begin) and `data-count` */
export function start(element) {
  const { events = '' } = element.dataset;
  if (typeof BroadcastChannel !== 'undefined') {
    channel = new BroadcastChannel(NAME);
    channel.addEventListener('message', ({ data }) => {
      show(element, data.count);
      // It takes the place of the same one of the tab that asks, and a click leads to the tab that made it.
      if (data.news !== null && location.pathname === LIST) notify(data.news);
    });
  }
  document.addEventListener('svc:signed-out', () => {
    forget();
    showSignedOut(true);
  });
  document.addEventListener('svc:signed-in', () => showSignedOut(false));
  document.addEventListener('submit', ({ target }) => {
    if (target instanceof HTMLFormElement && new URL(target.action).pathname === SIGN_OUT) forget();
  });
  const look = makePlan(async () => {
    const waiting = isLeading() ? await readList() : null;
    if (waiting === null) return;
    show(element, waiting.count);
    if (waiting.news !== null) notify(waiting.news);
    channel?.postMessage(waiting);
  });
  followEvents({ types: [events], opened: () => look(SETTLE_MS), came: () => look(SETTLE_MS), lost() {} });
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
  const before = readEnds();
  localStorage.setItem(NAME, JSON.stringify(Object.fromEntries(cards.map(({ key, until }) => [key, until]))));
  // A browser that knows nothing yet shows the count alone.
  const isNews = (/** @type {typeof cards[number]} */ { key, until, seconds }) => {
    const last = before?.[key];
    if (before === null || last === undefined) return before !== null;
    // It was given up, and its agent waits again.
    return until !== '' && (last === '' || Date.parse(until) - seconds * 1000 >= Date.parse(last));
  };
  const news = cards.filter(isNews);
  const [newest] = [...news.filter(({ until }) => until === ''), ...news.filter(({ until }) => until !== '')].slice(-1);
  return {
    count: Number(count),
    news: newest === undefined ? null : { key: newest.key, line: newest.line },
  };
}

/** @returns {Ends | null} null if the browser knows nothing yet */
function readEnds() {
  return JSON.parse(localStorage.getItem(NAME) ?? 'null');
}

function forget() {
  localStorage.removeItem(NAME);
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
