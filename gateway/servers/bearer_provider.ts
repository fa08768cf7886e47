import type { AuthProvider } from '@modelcontextprotocol/client';
import { leftUntil, momentAt, readClocks, type TwoClocks } from '../../shared/model/clock.ts';
import type { FilledBearer } from './current_mask.ts';

export interface BearerOptions extends TwoClocks {
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
export function bearerOf(first: FilledBearer, options: BearerOptions): BearerProvider {
  const { clock, refresh } = options;
  // The wall clock may be set on the way: what is left counts from before the token was asked for, or from now if that is less.
  const hold = ({ text, expiresAt }: FilledBearer, asked = readClocks(options)) => {
    const from = { ...asked, wall: Math.max(asked.wall, clock.now()) };
    const end = momentAt(expiresAt ?? Number.POSITIVE_INFINITY, from);
    return { text, leftMs: () => leftUntil(end, options) };
  };
  let held: ReturnType<typeof hold> | null = hold(first);
  const renew = async (): Promise<void> => {
    const asked = readClocks(options);
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
