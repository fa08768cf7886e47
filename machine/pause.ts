import { setTimeout } from 'node:timers/promises';

/** Waits; resolves immediately if the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return wait(ms, { ref: true, ...(signal !== undefined && { signal }) });
}

/** Like {@link pause}, but does not keep the program running. */
export function pauseInBackground(ms: number, signal: AbortSignal): Promise<void> {
  return wait(ms, { ref: false, signal });
}

/** Waits until the signal is aborted. */
export function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function wait(ms: number, options: { readonly ref: boolean; readonly signal?: AbortSignal }): Promise<void> {
  // Rejects only on abort.
  await setTimeout(ms, undefined, options).catch(() => undefined);
}
