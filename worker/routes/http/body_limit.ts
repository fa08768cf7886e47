import type { MiddlewareHandler } from 'hono';
import type { ApiLimits } from '../../../shared/model/limits.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { bodyTooLarge, errorReply } from './error_reply.ts';

/** Larger bodies are not read to the end, even if that breaks the reply. */
const MAX_UNWANTED_BYTES = 64 * 1024 * 1024;
/** A client that sends nothing for this long is assumed to wait for the reply, as with `Expect: 100-continue`. */
const UNSENT_MS = 250;

/**
 * Refuses larger bodies, and reads every body to its end before the reply, even an unused one. If a server closes while
 * bytes are arriving, the connection is reset and the client may not see the reply.
 */
export function limitBody(maxBytesOf: (limits: ApiLimits, path: string) => number): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const { body } = c.req.raw;
    if (body === null) return next();
    const maxBytes = maxBytesOf(c.get('context').limits, c.req.path);
    const declared = readDeclaredBytes(c);
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

/** The declared length of the body; null if it is chunked. */
function readDeclaredBytes(c: AppContext): number | null {
  const length = c.req.header('content-length');
  return length === undefined || c.req.header('transfer-encoding') !== undefined ? null : Number(length);
}

type Reader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;

/** The body; null if it is larger than `maxBytes`. */
async function readUpTo(reader: Reader, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joinChunks(chunks, size);
    size += value.length;
    if (size > maxBytes) return null;
    chunks.push(value);
  }
}

function joinChunks(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Reads until the end of the body, the limit, or until the client stops sending. */
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
