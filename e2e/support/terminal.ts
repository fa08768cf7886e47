import { join } from 'node:path';
import { z } from 'zod';
import { pythonWith, STANDARD_MODULES } from '../../tools/system_parts.mjs';
import { runOk, type RunOptions } from './program.ts';

const IN_TERMINAL = join(import.meta.dirname, 'programs', 'in_terminal.py');

/** What a person at a terminal does, or waits for; a signal is sent to the command. */
export type TerminalStep = { expect: string } | { type: string } | { resize: [number, number] } | { signal: string };

const terminalReport = z.object({ code: z.number(), missed: z.string().nullable(), shown: z.string() });
/** How the command ended, the first expected text that did not come, and all that the terminal showed. */
export type TerminalReport = z.infer<typeof terminalReport>;

/** Runs a command on a terminal of its own, with a person who does these steps. */
export async function runAtTerminal(
  steps: readonly TerminalStep[],
  command: readonly string[],
  options: Pick<RunOptions, 'cwd' | 'env'>,
): Promise<TerminalReport> {
  const python = pythonWith(STANDARD_MODULES) ?? 'python3';
  const env = { TERM: 'xterm', ...options.env };
  const done = await runOk(python, [IN_TERMINAL, JSON.stringify(steps), ...command], { ...options, env });
  return terminalReport.parse(JSON.parse(done.stdout));
}
