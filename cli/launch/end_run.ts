import type { Call } from '../command_line.ts';
import type { CliContext, GlobalOptions } from '../context.ts';
import { printerFor } from '../terminal/output.ts';
import { printEndHints } from './end_hints.ts';
import { takeRecord } from './run_record.ts';
import { endSession } from './session_access.ts';

/** Ends the session of a command that has ended, and prints its last lines. */
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
  await endSession(call, sessionId);
  const expectedHosts = record.expected_hosts ?? undefined;
  await printEndHints(call, { sessionId, hadPlaceholders: record.had_placeholders, expectedHosts });
  if (!record.is_counted) return;
  const { printSummary } = await import('../agents/run_summary.ts');
  await printSummary(call, sessionId);
}
