import { createInterface } from 'node:readline/promises';
import type { CliContext } from '../context.ts';

/** Reads one line from the terminal; null at end of input. */
export async function askLine(context: CliContext, question: string): Promise<string | null> {
  const prompt = createInterface({ input: context.stdin, output: context.stderr });
  const ended = new AbortController();
  prompt.once('close', () => ended.abort());
  try {
    return await prompt.question(question, { signal: AbortSignal.any([context.stop, ended.signal]) });
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return null;
    throw error;
  } finally {
    prompt.close();
  }
}

/** Asks a yes/no question; anything but yes counts as no. */
export async function askYes(context: CliContext, question: string): Promise<boolean> {
  return /^\s*y(?:es)?\s*$/i.test((await askLine(context, `${question} [y/N] `)) ?? '');
}
