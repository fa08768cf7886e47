// Follows a stream of events, and connects again after each end of it, with growing pauses while that fails.

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Follows until the page is left. A browser has six connections to a host over HTTP/1.1, so a page that is not seen gives its own
 * back until it is seen again, unless it follows for others. The events `svc:signed-out` and `svc:signed-in`
 * say whether the stream needs a sign-in.
 * @param {string} url
 * @param {{ isForOthers: boolean, opened: () => void, came: () => void, lost: () => void }} on `opened`: what happened before is
 *   not told by events.
 */
export function followStream(url, on) {
  /** @type {EventSource | null} */
  let source = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let pauseMs = FIRST_PAUSE_MS;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    const opened = new EventSource(url);
    source = opened;
    opened.addEventListener('open', () => {
      pauseMs = FIRST_PAUSE_MS;
      document.dispatchEvent(new CustomEvent('svc:signed-in'));
      on.opened();
    });
    opened.addEventListener('audit', on.came);
    opened.addEventListener('error', () => {
      on.lost();
      // A browser connects again by itself if a connection was lost, but not after an answer that is an error.
      if (opened.readyState !== EventSource.CLOSED || opened !== source) return;
      timer = setTimeout(open, pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      void tellSignedOut(url);
    });
  };
  const isOpen = () => source !== null && source.readyState !== EventSource.CLOSED;
  let isLeft = false;
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && !on.isForOthers) close();
    else if (!document.hidden && !isLeft && !isOpen()) open();
  });
  addEventListener('pagehide', () => {
    isLeft = true;
    close();
  });
  addEventListener('pageshow', ({ persisted }) => {
    // Who follows for others has to get its turn again.
    if (!persisted || on.isForOthers) return;
    isLeft = false;
    open();
  });
  if (on.isForOthers || !document.hidden) open();
}

/**
 * An EventSource does not say which answer it got.
 * @param {string} url
 */
async function tellSignedOut(url) {
  const reply = await fetch(url, { method: 'HEAD' }).catch(() => null);
  if (reply?.status === 401) document.dispatchEvent(new CustomEvent('svc:signed-out'));
}
