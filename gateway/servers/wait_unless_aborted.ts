/** Resolves with the value, or with null if the signal is aborted first. Rejects if the value does. */
export async function waitUnlessAborted<T>(value: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const over = Promise.withResolvers<null>();
  const end = (): void => over.resolve(null);
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([value, over.promise]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
