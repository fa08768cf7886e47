import { createInterface } from 'node:readline/promises';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** Reads one line from the terminal; null at end of input, at Ctrl-C and when `stop` is aborted. */
export async function askLine(
  context: CliContext,
  question: string,
  stop: AbortSignal = context.stop,
): Promise<string | null> {
  const prompt = createInterface({ input: context.stdin, output: context.stderr });
  const ended = new AbortController();
  prompt.once('close', () => ended.abort());
  try {
    return await prompt.question(question, { signal: AbortSignal.any([stop, ended.signal]) });
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return null;
    throw error;
  } finally {
    prompt.close();
  }
}

/** Asks a yes/no question; anything but yes counts as no. */
export async function askYes(context: CliContext, question: string): Promise<boolean> {
  return isYes((await askLine(context, `${question} [y/N] `)) ?? '');
}

/** The person ended a question with Ctrl-C or the end of the input: no other question may follow. */
export class StoppedError extends CliError {
  constructor() {
    super(EXIT.failed, 'stopped: nothing else was changed');
    this.name = 'StoppedError';
  }
}

/** Reads one line from the terminal; throws `StoppedError` if the person ends the question. */
export async function askOrStop(context: CliContext, question: string): Promise<string> {
  const answer = await askLine(context, question);
  if (answer === null) throw new StoppedError();
  return answer;
}

export function isYes(answer: string): boolean {
  return /^\s*y(?:es)?\s*$/i.test(answer);
}
