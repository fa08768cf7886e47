import type { Printer } from '../terminal/output.ts';

const PATIENCE_MS = 1_000;

/** Waits for `work`; prints what it is waiting for if that takes over a second. */
export async function withProgress<T>(print: Printer, text: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => print.note(text), PATIENCE_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
