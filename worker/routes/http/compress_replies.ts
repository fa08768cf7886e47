import type { MiddlewareHandler } from 'hono';
import type { AppContext, AppEnv } from './app_env.ts';
import { chooseCoding } from './content_coding.ts';

/**
 * Pages and JSON. Not event streams, which would be delayed, nor replies to sidecars, which are signed and encrypted.
 */
const COMPRESSIBLE = /^(text\/html|application\/(schema\+)?json)\b/;
/** Smaller replies gain nothing. */
const LEAST_BYTES = 1024;
/** Routes with codes and tokens in paths and pages. */
const WITH_CODES = /^\/(auth|device|oauth|mcp|v1\/sidecar)(\/|$)/;

/**
 * Compresses replies, or with `isPlatformDoing` leaves it to the platform. The length of a compressed reply reveals how
 * similar its parts are. An attacker who controls a part, can make a browser repeat the request and sees the lengths
 * can learn the rest (BREACH). So replies with secrets are not compressed, nor those that another site may have made a
 * signed-in browser request; `no-transform` keeps proxies from compressing them.
 */
export function compressReplies(isPlatformDoing: boolean): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    await next();
    if (!COMPRESSIBLE.test(c.res.headers.get('content-type') ?? '')) return;
    if (!mayBeCompressed(c)) return c.header('cache-control', 'no-transform', { append: true });
    c.header('vary', 'Accept-Encoding', { append: true });
    if (isPlatformDoing || chooseCoding(c, ['gzip']) === null) return;
    await compress(c);
  };
}

/**
 * Secrets that are shown once (tokens, codes, input) are in replies to POST or in refusals, so only a successful GET is
 * compressed.
 */
function mayBeCompressed(c: AppContext): boolean {
  const isReading = c.req.method === 'GET' || c.req.method === 'HEAD';
  return isReading && c.res.status === 200 && !WITH_CODES.test(c.req.path) && isAskedByItself(c);
}

/** Pages of other sites cannot add a bearer token, and a request without a cookie gets only public content. */
function isAskedByItself(c: AppContext): boolean {
  const site = c.req.header('sec-fetch-site');
  return c.req.header('cookie') === undefined || site === 'same-origin' || site === 'none';
}

async function compress(c: AppContext): Promise<void> {
  const { status } = c.res;
  const headers = new Headers(c.res.headers);
  const plain = await c.res.arrayBuffer();
  const isWorthIt = plain.byteLength >= LEAST_BYTES;
  const body = isWorthIt ? await gzip(plain) : plain;
  if (isWorthIt) headers.set('content-encoding', 'gzip');
  headers.set('content-length', String(body.byteLength));
  // Assigning the response merges the headers of the previous one.
  c.res = undefined;
  c.res = new Response(body, { status, headers });
}

function gzip(bytes: ArrayBuffer): Promise<ArrayBuffer> {
  return new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
}
