import type { Call } from '../command_line.ts';
import type { CliContext, GlobalOptions } from '../context.ts';
import { printerFor } from '../terminal/output.ts';
import { endSession } from './end_session.ts';
import { mayHaveHints } from './hinted_reasons.ts';
import { takeRecord } from './run_record.ts';

/**
 * Ends the session of a command that has ended, and prints its last lines. This is a process of its own after each run, so it loads
 * little; a test lists it.
 */
export async function endRun(context: CliContext, path: string): Promise<void> {
  const record = takeRecord(path);
  if (record === null) {
    context.stderr.write(`svc: ${path} is damaged: the session ends by itself, and nothing more is said of it\n`);
    return;
  }
  const { home, control, json, quiet } = record;
  const options: GlobalOptions & { readonly quiet: boolean } = {
    json,
    quiet,
    home,
    ...(control !== null && { control }),
  };
  const call: Call<typeof options> = { context, args: [], options, print: printerFor(context, options) };
  const sessionId = record.session_id;
  const reasons = await endSession(call, sessionId);
  if (mayHaveHints(reasons)) {
    const { printEndHints } = await import('./end_hints.ts');
    const expectedHosts = record.expected_hosts ?? undefined;
    await printEndHints(call, { sessionId, hadPlaceholders: record.had_placeholders, expectedHosts });
  }
  if (!record.is_counted) return;
  const { printSummary } = await import('../agents/run_summary.ts');
  await printSummary(call, sessionId);
}
