/** Calls `look` every few milliseconds until it returns a value; fails with what was awaited when the time is up. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  timeoutMs = 120_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
