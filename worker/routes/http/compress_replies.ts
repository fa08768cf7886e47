import type { MiddlewareHandler } from 'hono';
import type { AppContext, AppEnv } from './app_env.ts';
import { fittingCoding } from './content_coding.ts';

/** Pages and JSON. Not event streams, which would be held back; nor what sidecars get, which is signed and sealed. */
const COMPRESSIBLE = /^(text\/html|application\/(schema\+)?json)\b/;
/** Smaller replies gain nothing. */
const LEAST_BYTES = 1024;
/** Where codes and tokens are in paths and pages. */
const WITH_CODES = /^\/(auth|device|v1\/sidecar)(\/|$)/;

/**
 * Compresses replies, or with `isPlatformDoing` leaves it to the platform. The length of a compressed reply says how much of
 * it is like the rest of it, so who chooses a part of a reply, lets a browser ask for it again and again and sees the lengths
 * learns what else is in it (BREACH). So nothing is compressed that has a secret in it, nor what somebody else may have had a
 * signed-in browser ask for; `no-transform` keeps those from being compressed by whatever stands before us.
 */
export function compressReplies(isPlatformDoing: boolean): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    await next();
    if (!COMPRESSIBLE.test(c.res.headers.get('content-type') ?? '')) return;
    if (!mayBeCompressed(c)) return c.header('cache-control', 'no-transform', { append: true });
    c.header('vary', 'Accept-Encoding', { append: true });
    if (isPlatformDoing || fittingCoding(c, ['gzip']) === null) return;
    await compress(c);
  };
}

/** What is shown once (tokens, codes, what was typed) answers a POST or is refused; so it is a reading that went well. */
function mayBeCompressed(c: AppContext): boolean {
  const isReading = c.req.method === 'GET' || c.req.method === 'HEAD';
  return isReading && c.res.status === 200 && !WITH_CODES.test(c.req.path) && isAskedByItself(c);
}

/** No page of another site can add a bearer token to a call, and one without a cookie shows what everybody may see. */
function isAskedByItself(c: AppContext): boolean {
  const site = c.req.header('sec-fetch-site');
  return c.req.header('cookie') === undefined || site === 'same-origin' || site === 'none';
}

async function compress(c: AppContext): Promise<void> {
  const { status } = c.res;
  const headers = new Headers(c.res.headers);
  const plain = await c.res.arrayBuffer();
  const isWorthIt = plain.byteLength >= LEAST_BYTES;
  const body = isWorthIt ? await gzipped(plain) : plain;
  if (isWorthIt) headers.set('content-encoding', 'gzip');
  headers.set('content-length', String(body.byteLength));
  // What is assigned takes over the headers of what was there before.
  c.res = undefined;
  c.res = new Response(body, { status, headers });
}

function gzipped(bytes: ArrayBuffer): Promise<ArrayBuffer> {
  return new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
}
