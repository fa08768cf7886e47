import { findHeadEnd } from '../../shared/net/http/http1_head.ts';
import { canStartRequest, START_BYTES } from '../../shared/net/http/request_start.ts';
import type { Connection } from './connection.ts';
import { ConnectionLost } from './connection.ts';

/** A raw message head, or why there is none. */
export type HeadRead =
  | { readonly kind: 'head'; readonly bytes: Buffer }
  | { readonly kind: 'end' }
  | { readonly kind: 'lost'; readonly code: string }
  | { readonly kind: 'truncated' }
  | { readonly kind: 'too_large' };

/**
 * Reads a head up to and including its final empty line; later bytes stay in the connection. `end`: the peer finished before
 * the first byte. `lost`: the connection was lost before it. `truncated`: either happened in the middle.
 */
export function readHead(connection: Connection, maxBytes: number): Promise<HeadRead> {
  return collectHead<never>(connection, maxBytes, () => null);
}

/** Reads the head of a request as {@link readHead} does. `not_http`: no request starts with the first bytes. */
export function readRequestHead(connection: Connection, maxBytes: number): Promise<HeadRead | NotHttp> {
  return collectHead<NotHttp>(connection, maxBytes, (bytes) => (canStartRequest(bytes) ? null : { kind: 'not_http' }));
}

interface NotHttp {
  readonly kind: 'not_http';
}

/** `judge` looks at the first bytes of an incomplete head, and may end the wait for the rest. */
async function collectHead<Ended>(
  connection: Connection,
  maxBytes: number,
  judge: (bytes: Uint8Array) => Ended | null,
): Promise<HeadRead | Ended> {
  let held: Buffer | null = null;
  for (;;) {
    let chunk: Buffer | null;
    try {
      chunk = connection.take() ?? (await connection.nextChunk());
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      return held === null ? { kind: 'lost', code: error.code } : { kind: 'truncated' };
    }
    if (chunk === null) return { kind: held === null ? 'end' : 'truncated' };
    const from: number = held === null ? 0 : Math.max(0, held.length - 3);
    const bytes: Buffer = held === null ? chunk : Buffer.concat([held, chunk]);
    const end = findHeadEnd(bytes, from);
    if (end > maxBytes || (end === -1 && bytes.length >= maxBytes)) return { kind: 'too_large' };
    if (end !== -1) {
      if (end < bytes.length) connection.putBack(bytes.subarray(end));
      return { kind: 'head', bytes: end === bytes.length ? bytes : bytes.subarray(0, end) };
    }
    const ended = held === null || held.length < START_BYTES ? judge(bytes) : null;
    if (ended !== null) return ended;
    held = bytes;
  }
}
