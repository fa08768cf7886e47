import type { MiddlewareHandler } from 'hono';
import type { ApiLimits } from '../../../shared/model/limits.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { bodyTooLarge, errorReply } from './error_reply.ts';

/** A larger body than this is not read to its end, whatever becomes of the reply. */
const MAX_UNWANTED_BYTES = 64 * 1024 * 1024;
/** A client that sends nothing for so long waits for its answer, as one does that asks with `Expect: 100-continue`. */
const UNSENT_MS = 250;

/**
 * Refuses larger bodies, and reads each body to its end before the call is answered, also one that nobody wanted. A server
 * that answers and closes while bytes are still coming resets the connection, and the client may see that and no answer.
 */
export function limitBody(maxBytesOf: (limits: ApiLimits, path: string) => number): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const { body } = c.req.raw;
    if (body === null) return next();
    const maxBytes = maxBytesOf(c.get('context').limits, c.req.path);
    const declared = declaredBytes(c);
    if (declared !== null && declared <= maxBytes) {
      await next();
      if (!c.req.raw.bodyUsed) await discard(c, body.getReader());
      return;
    }
    const reader = body.getReader();
    const bytes = declared === null ? await readUpTo(reader, maxBytes) : null;
    if (bytes !== null) {
      c.req.raw = new Request(c.req.raw, { method: c.req.method, body: bytes });
      return next();
    }
    await discard(c, reader);
    return errorReply(c, bodyTooLarge(maxBytes));
  };
}

/** The length that the client says the body has; null when it comes in chunks. */
function declaredBytes(c: AppContext): number | null {
  const length = c.req.header('content-length');
  return length === undefined || c.req.header('transfer-encoding') !== undefined ? null : Number(length);
}

type Reader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;

/** The body; null when it is larger than `maxBytes`. */
async function readUpTo(reader: Reader, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joined(chunks, size);
    size += value.length;
    if (size > maxBytes) return null;
    chunks.push(value);
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Ends at the end of the body, at the limit, or when the client sends no more: it waits, or is gone. */
async function discard(c: AppContext, reader: Reader): Promise<void> {
  let size = 0;
  while (size <= MAX_UNWANTED_BYTES) {
    const next = await readInTime(c, reader);
    if (next === null || next.done) break;
    size += next.value.length;
  }
  await reader.cancel();
}

async function readInTime(c: AppContext, reader: Reader) {
  const waiting = new AbortController();
  const late = c
    .get('context')
    .clock.sleep(UNSENT_MS, waiting.signal)
    .then(() => null);
  const next = await Promise.race([reader.read().catch(() => null), late]);
  waiting.abort();
  return next;
}
