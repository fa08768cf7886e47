import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { HeaderField } from '../../shared/net/http/http1_head.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import type { LiveSession, SessionDirectory } from '../ports.ts';

/** Authenticates a proxy request by Basic proxy authentication (specification section 5, RFC 7617). */
export function authenticate(fields: readonly HeaderField[], sessions: SessionDirectory): Result<LiveSession, Refusal> {
  const values = fieldValues(fields, 'proxy-authorization');
  const [value] = values;
  const vouched = value === undefined ? (sessions.findVouchedSession?.() ?? null) : null;
  if (vouched !== null) return ok(vouched);
  if (value === undefined) return refuse("this proxy needs a session's credentials; start one with `svc run`");
  if (values.length > 1) return refuse('send one Proxy-Authorization header');
  const pair = basicPair(value);
  if (pair === null) return refuse('Proxy-Authorization must be Basic with session id and token');
  const session = sessions.authenticate(pair.username, pair.password);
  return session === null ? refuse('the session is unknown or has ended, or its token is wrong') : ok(session);
}

function basicPair(value: string): { username: string; password: string } | null {
  const encoded = /^basic +([A-Za-z0-9+/]{1,1024}={0,2})$/i.exec(value)?.[1];
  if (encoded === undefined) return null;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon === -1 ? null : { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

function refuse(message: string): { readonly ok: false; readonly error: Refusal } {
  return err(refusal('proxy_authentication_required', message));
}
