import type { Readable } from 'node:stream';
import type { StepOutput } from './plan_ports.ts';
import { TerminalFilter } from './terminal_filter.ts';

/**
 * Passes on what a step prints, as fast as it is taken: to a file or a pipe byte for byte, to a terminal without the control
 * sequences that do more than colour text. Never rejects: a reader that went away is not the step's failure.
 */
export async function passOn(from: Readable | null, to: StepOutput): Promise<void> {
  if (from === null) return;
  const filter = to.isTTY === true ? new TerminalFilter() : null;
  try {
    for await (const chunk of from) {
      if (chunk instanceof Uint8Array) await written(to, filter === null ? chunk : filter.push(chunk));
    }
    if (filter !== null) await written(to, filter.end());
  } catch {
    from.resume();
  }
}

function written(to: StepOutput, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    to.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
