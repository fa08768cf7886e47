import { timingSafeEqual } from 'node:crypto';
import type { Session } from '../session/session.ts';
import type { Sessions } from '../session/sessions.ts';
import { sha256 } from '../../machine/sha256.ts';

/** Who calls the local API (design section 8). */
export type Caller =
  | { readonly kind: 'host' }
  | { readonly kind: 'session'; readonly session: Session }
  /** No token, which only tells whether the daemon is there. */
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'unknown' };

const BEARER = /^Bearer ([\x21-\x7e]{1,256})$/i;

/**
 * Says who a call's Authorization header shows; tokens are compared in constant time. Without a host token nobody is the
 * host: it is never in a container, so that a call with it from there is made by somebody who should not have it.
 */
export function callersOf(
  hostToken: string | null,
  sessions: Pick<Sessions, 'withToken'>,
): (header: string | undefined) => Caller {
  const hostHash = hostToken === null ? null : sha256(hostToken);
  return (header) => {
    if (header === undefined) return { kind: 'anonymous' };
    const token = BEARER.exec(header)?.[1];
    if (token === undefined) return { kind: 'unknown' };
    if (hostHash !== null && timingSafeEqual(sha256(token), hostHash)) return { kind: 'host' };
    const session = sessions.withToken(token);
    return session === null ? { kind: 'unknown' } : { kind: 'session', session };
  };
}
