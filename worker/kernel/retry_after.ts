import { backoffMs } from '../../shared/net/backoff.ts';

/** `Retry-After` as seconds or a date (RFC 9110 section 10.2.3), in milliseconds from now; null if it is absent or neither. */
export function readRetryAfter(text: string | undefined, nowMs: number): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}

/** The longest pause that somebody can ask for. */
const LONGEST_ASKED_MS = 24 * 3_600_000;

/** The pause after so many failures in a row: it doubles, and is as long as was asked for, if that is longer. */
export function pauseAfter(failures: number, askedMs: number, backoff: Parameters<typeof backoffMs>[1]): number {
  return Math.max(backoffMs(failures, backoff), Math.min(askedMs, LONGEST_ASKED_MS));
}
