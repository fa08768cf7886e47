import type { Http2Session } from 'node:http2';

/** How much one HTTP/2 stream may send before it is read: an upload from this machine, and a reply from far away. */
export const UPLOAD_WINDOW_BYTES = 256 * 1024;
export const REPLY_WINDOW_BYTES = 1024 * 1024;

/** The same for all streams of a connection, which node:http2 counts as read when it arrives: it limits the speed only. */
export const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;

/** Opens that window once the session has begun. node:http2 also says `connect` of a session that was destroyed before. */
export function openConnectionWindow(session: Http2Session): void {
  session.once('connect', () => {
    if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  });
}

/** Streams that a client may have open in one tunnel. */
export const MOST_STREAMS = 100;

/**
 * How far the library's own limits for heads are above ours. A head between the two is refused and recorded; a larger one is
 * reset by the library.
 */
export const HEAD_MARGIN = 2;
