import { randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256 } from '../../machine/sha256.ts';

/** A new token of 256 random bits: `svc_<kind>_` and 43 characters. */
export function newToken(kind: 'session' | 'scope'): string {
  return `svc_${kind}_${randomBytes(32).toString('base64url')}`;
}

/** The SHA-256 of a token, for storage and comparison. */
export function tokenHash(token: string): Buffer {
  return sha256(token);
}

/** Compares two hashes of {@link tokenHash} in constant time. */
export function isSameHash(one: Buffer, other: Buffer): boolean {
  return timingSafeEqual(one, other);
}
