import { findHeadEnd } from '../../shared/net/http/http1_head.ts';
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
export async function readHead(connection: Connection, maxBytes: number): Promise<HeadRead> {
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
    held = bytes;
  }
}
