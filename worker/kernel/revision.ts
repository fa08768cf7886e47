import { canonicalJson } from '../../shared/audit/canonical_json.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { sha256Hex } from './sha256.ts';

/** The revision of a thing that several people change: a hash of what they change. */
export function revisionOf(content: unknown): string {
  return sha256Hex(canonicalJson(content));
}

/**
 * Refuses a replacement of a thing that was changed after its caller had read it; null if it was not, or if the caller names no
 * revision. It holds where the decision is repeated if another change of the enterprise is written first.
 */
export function changedSince(what: string, read: string | null | undefined, now: string | undefined): ApiError | null {
  if (read === null || read === undefined || read === now) return null;
  return apiError('conflict', `${what} changed meanwhile: read again, then apply your change`);
}
