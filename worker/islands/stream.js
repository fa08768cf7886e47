// What the open pages learn of the audit log. A browser has six connections to a host over HTTP/1.1, so all tabs of a user share one
// stream: one tab leads, which is to follow it and to tell the others the type of each event.

import { userOf } from './refreshed.js';

const PATH = '/v1/audit-events/stream';
const NAME = `svc-stream ${userOf(document) ?? ''}`;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** How often a tab asks the leading one whether it is there. */
const BEAT_MS = 5_000;

/**
 * Acts on events whose type begins with one of `types`. `opened`: what happened before is not told by events.
 * @typedef {{ types: readonly string[], opened: () => void, came: () => void, lost: () => void }} Follower
 */
/**
 * What tabs of a user tell each other. `began`: a page was opened, so the user is signed in. `ask`: a page is seen again. `beat`:
 * whether somebody leads. `left`: another user is signed in. `stream` has another value for each connection; null while there is none.
 * @typedef {{ kind: 'began' | 'ask' | 'beat' | 'left' | 'signed-out' } | { kind: 'state', stream: string | null } | { kind: 'event', type: string }} Message
 */

/** @type {Follower[]} */
const followers = [];
/** Undefined until this page has heard of the stream. @type {string | null | undefined} */
let known;
/** @type {ReturnType<typeof makeStream> | null} */
let own = null;
/** @type {BroadcastChannel | null} */
let channel = null;
/** Ends this tab's turn to lead, or its wait for one. @type {AbortController | null} */
let turn = null;
/** Whether the leading tab was heard since it was asked. */
let isHeard = true;

/**
 * Follows until the page is left. The events `svc:signed-out` and `svc:signed-in` say whether the stream needs a sign-in.
 * @param {Follower} follower
 */
export function followEvents(follower) {
  followers.push(follower);
  if (followers.length === 1) start();
  else if (known !== undefined) tellState(follower);
}

/** Whether this is the tab that follows the stream for all. */
export function isLeading() {
  return own !== null;
}

/** @param {Follower} follower */
function tellState({ opened, lost }) {
  if (known === null) lost();
  else opened();
}

function start() {
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) join('ask');
  });
  document.addEventListener('visibilitychange', () => {
    if (channel === null) return document.hidden ? leave() : join('ask');
    if (document.hidden) return;
    if (turn === null) void waitForTurn();
    channel.postMessage({ kind: 'ask' });
    own?.retry();
  });
  document.addEventListener('svc:signed-out', (event) => {
    const by = event instanceof CustomEvent ? event.detail : null;
    if (by === 'tab') return;
    channel?.postMessage({ kind: by === 'other' ? 'left' : 'signed-out' });
    if (by === 'other') giveWay();
    else if (by !== 'stream') own?.check();
  });
  addEventListener('pagehide', leave);
  setInterval(listen, BEAT_MS);
  join('began');
}

/** Where a page has no locks, it has a stream of its own while it is seen. @param {'began' | 'ask'} kind */
function join(kind) {
  if (navigator.locks === undefined) {
    if (!document.hidden) lead();
    return;
  }
  channel = new BroadcastChannel(NAME);
  channel.addEventListener('message', ({ data }) => hear(data));
  channel.postMessage({ kind });
  void waitForTurn();
}

/** The lock goes to the next tab when this one is left or crashes, and to a tab that takes it because this one does not answer. */
async function waitForTurn(isTaken = false) {
  const mine = new AbortController();
  turn?.abort();
  turn = mine;
  const { signal } = mine;
  await navigator.locks
    .request(NAME, isTaken ? { steal: true } : { signal }, () => takeTurn(signal))
    .catch(() => undefined);
  if (turn !== mine || own === null) return;
  // Another tab has taken it.
  own?.close();
  own = null;
  void waitForTurn();
}

/** @param {AbortSignal} signal */
async function takeTurn(signal) {
  if (signal.aborted) return;
  lead();
  await new Promise((resolve) => {
    signal.addEventListener('abort', resolve, { once: true });
  });
}

function lead() {
  own ??= makeStream();
  own.retry();
}

/** Leads if nobody has answered since it asked last. */
function listen() {
  if (channel === null || turn === null || own !== null) return;
  if (isHeard) channel.postMessage({ kind: 'beat' });
  else void waitForTurn(true);
  isHeard = !isHeard;
}

/** Until the page is seen again, or its user signs in again. */
function giveWay() {
  hear({ kind: 'state', stream: null });
  endTurn();
}

function endTurn() {
  known = undefined;
  turn?.abort();
  turn = null;
  own?.close();
  own = null;
}

function leave() {
  endTurn();
  channel?.close();
  channel = null;
}

/** @param {Message} message */
function tell(message) {
  channel?.postMessage(message);
  hear(message);
}

/** @param {Message} message */
function hear(message) {
  if (message.kind === 'event') {
    isHeard = true;
    for (const { types, came } of followers) if (types.some((each) => message.type.startsWith(each))) came();
  } else if (message.kind === 'state') {
    isHeard = true;
    if (message.stream === known) return;
    known = message.stream;
    if (known !== null) dispatch('svc:signed-in', 'tab');
    for (const follower of followers) tellState(follower);
  } else if (message.kind === 'signed-out') {
    dispatch('svc:signed-out', 'tab');
    own?.check();
  } else if (message.kind === 'left') {
    giveWay();
    dispatch('svc:signed-out', 'tab');
  } else if (message.kind === 'beat') {
    own?.answer();
  } else {
    if (message.kind === 'began') dispatch('svc:signed-in', 'tab');
    if (turn === null) void waitForTurn();
    own?.retry();
  }
}

/**
 * @param {string} name
 * @param {'tab' | 'stream'} by
 */
function dispatch(name, by) {
  document.dispatchEvent(new CustomEvent(name, { detail: by }));
}

/** A stream that connects again after each end of it, with growing pauses while that fails. */
function makeStream() {
  /** @type {EventSource | null} */
  let source = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let pauseMs = FIRST_PAUSE_MS;
  /** @type {string | null} */
  let stream = null;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
    stream = null;
  };
  const answer = () => channel?.postMessage({ kind: 'state', stream });
  const open = () => {
    close();
    const opened = new EventSource(PATH);
    source = opened;
    opened.addEventListener('open', () => {
      pauseMs = FIRST_PAUSE_MS;
      stream = `${Date.now()} ${Math.random()}`;
      tell({ kind: 'state', stream });
    });
    opened.addEventListener('audit', ({ data }) => tell({ kind: 'event', type: JSON.parse(data).type }));
    opened.addEventListener('error', () => {
      if (opened !== source) return;
      stream = null;
      tell({ kind: 'state', stream });
      // A browser connects again after a lost connection, not after an error.
      if (opened.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      void noticeSignOut();
    });
  };
  return {
    close,
    /** Tells whoever asks whether there is a stream. */
    answer,
    /** Connects now if the stream has ended; tells whoever asks that it has not. */
    retry() {
      if (source === null || source.readyState === EventSource.CLOSED) open();
      else if (stream !== null) answer();
    },
    /** An open stream does not show at once that its sign-in has ended. */
    check() {
      if (stream !== null) open();
    },
  };
}

/** An EventSource does not say which answer it got. */
async function noticeSignOut() {
  const reply = await fetch(PATH, { method: 'HEAD' }).catch(() => null);
  if (reply?.status === 401) dispatch('svc:signed-out', 'stream');
}
