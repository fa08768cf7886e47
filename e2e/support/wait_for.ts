import { HANGS_MS } from './hangs.ts';

/** The first pause between two looks, and the longest. */
const PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 200;

/**
 * Calls `look` until it returns a value; fails with what was awaited when the time is up. The pauses grow with the time that has
 * passed, because looks take processor time from what is awaited.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  timeoutMs = HANGS_MS,
): Promise<T> {
  const began = Date.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    const passed = Date.now() - began;
    if (passed > timeoutMs) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    const pause = Math.min(Math.max(PAUSE_MS, passed / 10), LONGEST_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
