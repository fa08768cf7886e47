import type { Readable } from 'node:stream';
import type { StepOutput } from './plan_ports.ts';
import type { StartMark } from './start_mark.ts';
import { TerminalFilter } from './terminal_filter.ts';

/**
 * Passes on the output of a step, as fast as it is read: byte for byte to a file or a pipe; to a terminal without control
 * sequences, except colours. The start mark is removed. Never rejects: if the reader disconnects, the rest is discarded, and
 * that is not a failure of the step.
 */
export async function passOn(from: Readable | null, to: StepOutput, mark: StartMark | null = null): Promise<void> {
  if (from === null) return;
  const filter = to.isTTY === true ? new TerminalFilter() : null;
  let isRead = true;
  const put = async (text: string | Uint8Array): Promise<void> => {
    if (isRead && text.length > 0) isRead = await tryWrite(to, text);
  };
  const pass = (bytes: Uint8Array): Promise<void> => put(filter === null ? bytes : filter.push(bytes));
  try {
    for await (const chunk of from) {
      if (chunk instanceof Uint8Array) await pass(mark === null ? chunk : mark.push(chunk));
    }
  } catch {
    from.resume();
  }
  if (mark !== null) await pass(mark.end());
  if (filter !== null) await put(filter.end());
}

/** False if the reader has disconnected. */
function tryWrite(to: StepOutput, text: string | Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    to.write(text, (error) => resolve(error === null || error === undefined));
  });
}
