import type { AuthProvider } from '@modelcontextprotocol/client';
import type { FilledBearer } from './current_mask.ts';

export interface BearerOptions {
  readonly now: () => number;
  /** Milliseconds by a clock that nobody sets. It may stand still while the machine sleeps, as the other one does not. */
  readonly monotonicNow: () => number;
  /** Returns a new access token for the server, or null if there is none. */
  readonly refresh: () => Promise<FilledBearer | null>;
}

/** An access token is renewed this long before its expiry. */
const AHEAD_MS = 30_000;

export interface BearerProvider extends AuthProvider {
  /** The current token, if it is another one than `used`. */
  newerThan(used: string): Promise<string | null>;
}

/** A token is never given out past its end, which comes by each of the two clocks. */
export function bearerOf(first: FilledBearer, { now, monotonicNow, refresh }: BearerOptions): BearerProvider {
  const readClocks = () => ({ wall: now(), monotonic: monotonicNow() });
  // The wall clock may be set on the way: what is left counts from before the token was asked for, or from now if that is less.
  const hold = ({ text, expiresAt }: FilledBearer, asked = readClocks()) => {
    const end = expiresAt ?? Number.POSITIVE_INFINITY;
    const endMonotonic = asked.monotonic + end - Math.max(asked.wall, now());
    return { text, leftMs: () => Math.min(end - now(), endMonotonic - monotonicNow()) };
  };
  let held: ReturnType<typeof hold> | null = hold(first);
  const renew = async (): Promise<void> => {
    const asked = readClocks();
    const renewed = await refresh();
    held = renewed === null ? null : hold(renewed, asked);
  };
  const usable = (): string | null => (held !== null && held.leftMs() > 0 ? held.text : null);
  return {
    async token() {
      if (held !== null && held.leftMs() <= AHEAD_MS) await renew();
      return usable() ?? undefined;
    },
    // The provider may have revoked the token. If the new one is also refused, the error is returned.
    onUnauthorized: renew,
    async newerThan(used) {
      await renew();
      const newer = usable();
      return newer === used ? null : newer;
    },
  };
}
