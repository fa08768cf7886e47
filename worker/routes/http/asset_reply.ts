import { apiError } from '../../../shared/wire/errors.ts';
import type { Coding } from '../../pages/frame/assets.ts';
import type { AppContext } from './app_env.ts';
import { chooseCoding } from './content_coding.ts';
import { errorReply } from './error_reply.ts';

/** A static file, in the coding that the browser prefers. Changed content has another URL. */
export async function getAsset(c: AppContext, url = c.req.path): Promise<Response> {
  const assets = c.get('assets');
  const asset = assets.findAsset(url);
  if (asset === null) return errorReply(c, apiError('not_found', 'there is no such file: reload the page'));
  const coding = chooseCoding(c, assets.codings);
  const etag = tagOf(asset.hash, coding);
  c.header('cache-control', 'public, max-age=31536000, immutable');
  c.header('vary', 'Accept-Encoding');
  c.header('etag', etag);
  if (isHeld(c.req.header('if-none-match'), etag)) return c.body(null, 304);
  c.header('content-type', asset.contentType);
  if (coding !== null) c.header('content-encoding', coding);
  const body = coding === null ? new TextEncoder().encode(asset.text) : await assets.encode(asset, coding);
  c.header('content-length', String(body.byteLength));
  return c.body(body, 200);
}

/** Each coding has other bytes and therefore its own strong tag (RFC 9110, section 8.8.1). */
function tagOf(hash: string, coding: Coding | null): string {
  return coding === null ? `"${hash}"` : `"${hash}-${coding}"`;
}

/** If-None-Match uses weak comparison (RFC 9110, section 13.1.2), because a proxy may have weakened the tag. */
function isHeld(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
