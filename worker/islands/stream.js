// What the open pages learn of the audit log. A browser has six connections to a host over HTTP/1.1, so all of its tabs share one
// stream: one tab follows it and tells the others the type of each event.

const PATH = '/v1/audit-events/stream';
const NAME = 'svc-stream';
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Acts on events whose type begins with one of `types`. `opened`: what happened before is not told by events.
 * @typedef {{ types: readonly string[], opened: () => void, came: () => void, lost: () => void }} Follower
 */
/**
 * What tabs tell each other. `began`: a page was opened, so the person is signed in. `ask`: a page is seen again. `stream` has
 * another value for each connection; null while there is none.
 * @typedef {{ kind: 'began' | 'ask' | 'signed-out' } | { kind: 'state', stream: string | null } | { kind: 'event', type: string }} Message
 */

/** @type {Follower[]} */
const followers = [];
/** Undefined until this page has heard of the stream. @type {string | null | undefined} */
let known;
/** @type {ReturnType<typeof makeStream> | null} */
let own = null;
/** @type {BroadcastChannel | null} */
let channel = null;

/**
 * Follows until the page is left. The events `svc:signed-out` and `svc:signed-in` say whether the stream needs a sign-in.
 * @param {Follower} follower
 */
export function followEvents(follower) {
  followers.push(follower);
  if (followers.length === 1) start();
  else if (known !== undefined) tellState(follower);
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
    channel.postMessage({ kind: 'ask' });
    own?.retry();
  });
  document.addEventListener('svc:signed-out', (event) => {
    const by = event instanceof CustomEvent ? event.detail : null;
    if (by === 'tab') return;
    channel?.postMessage({ kind: 'signed-out' });
    if (by !== 'stream') own?.check();
  });
  addEventListener('pagehide', leave);
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
  const waiting = new AbortController();
  // The lock goes to the next tab when this one is left, also if it crashes.
  navigator.locks.request(NAME, { signal: waiting.signal }, takeTurn).catch(() => undefined);
  addEventListener('pagehide', () => waiting.abort(), { once: true });
}

/** Until the page is left. */
function takeTurn() {
  lead();
  return new Promise((resolve) => addEventListener('pagehide', resolve, { once: true }));
}

function lead() {
  own ??= makeStream();
  own.retry();
}

function leave() {
  own?.close();
  own = null;
  channel?.close();
  channel = null;
  known = undefined;
}

/** @param {Message} message */
function tell(message) {
  channel?.postMessage(message);
  hear(message);
}

/** @param {Message} message */
function hear(message) {
  if (message.kind === 'event') {
    for (const { types, came } of followers) if (types.some((each) => message.type.startsWith(each))) came();
  } else if (message.kind === 'state') {
    if (message.stream === known) return;
    known = message.stream;
    if (known !== null) dispatch('svc:signed-in', 'tab');
    for (const follower of followers) tellState(follower);
  } else if (message.kind === 'signed-out') {
    dispatch('svc:signed-out', 'tab');
    own?.check();
  } else {
    if (message.kind === 'began') dispatch('svc:signed-in', 'tab');
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
  let stream = '';
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
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
      tell({ kind: 'state', stream: null });
      // A browser connects again by itself if a connection was lost, but not after an answer that is an error.
      if (opened.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(open, pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      void noticeSignOut();
    });
  };
  return {
    close,
    /** Connects now if the stream has ended; tells whoever asks that it has not. */
    retry() {
      if (source === null || source.readyState === EventSource.CLOSED) open();
      else if (source.readyState === EventSource.OPEN) channel?.postMessage({ kind: 'state', stream });
    },
    /** Connects anew: an open stream does not show that its sign-in has ended. */
    check() {
      if (source?.readyState === EventSource.OPEN) open();
    },
  };
}

/** An EventSource does not say which answer it got. */
async function noticeSignOut() {
  const reply = await fetch(PATH, { method: 'HEAD' }).catch(() => null);
  if (reply?.status === 401) dispatch('svc:signed-out', 'stream');
}
