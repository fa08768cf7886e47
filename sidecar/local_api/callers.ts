import { timingSafeEqual } from 'node:crypto';
import type { Session } from '../session/session.ts';
import type { Sessions } from '../session/sessions.ts';
import { sha256 } from '../../machine/sha256.ts';

/** The caller of the local API (design section 8). */
export type Caller =
  | { readonly kind: 'host' }
  | { readonly kind: 'session'; readonly session: Session }
  /** No token; may only learn whether the sidecar is up. */
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'unknown' };

const BEARER = /^Bearer ([\x21-\x7e]{1,256})$/i;

/**
 * Identifies the caller by the Authorization header; compares tokens in constant time. Without a host token no caller is the
 * host. Listeners for containers run without it: the host token is never in a container, so a call from there that has it
 * must have stolen it.
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
