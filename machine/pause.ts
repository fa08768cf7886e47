import { setTimeout } from 'node:timers/promises';

/** Waits; resolves at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return wait(ms, { ref: true, ...(signal !== undefined && { signal }) });
}

/** Waits as {@link pause} does, and does not keep the program from ending. */
export function pauseInBackground(ms: number, signal: AbortSignal): Promise<void> {
  return wait(ms, { ref: false, signal });
}

async function wait(ms: number, options: { readonly ref: boolean; readonly signal?: AbortSignal }): Promise<void> {
  // It rejects when it is aborted, and for no other reason.
  await setTimeout(ms, undefined, options).catch(() => undefined);
}
