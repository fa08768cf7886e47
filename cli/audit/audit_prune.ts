import type { Command } from 'commander';
import { type AuditPruneReply, auditPruneReply } from '../../shared/wire/audit_events.ts';
import { controlClient } from '../clients.ts';
import { withProgress } from '../connectors/connector_progress.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { parseDuration, parseTime } from '../terminal/relative_time.ts';
import { valueOrUsageError } from '../command_options.ts';
import { counted } from '../../shared/model/sentence.ts';

interface PruneOptions {
  readonly before?: string;
  readonly olderThan?: string;
  readonly dryRun?: boolean;
}

/** `svc audit prune`. */
export function addPruneCommand(line: CommandLine, audit: Command): void {
  const prune = audit
    .command('prune')
    .description('permanently remove old events of your enterprise; the rest still verifies (admins only)')
    .option('--before <time>', 'events received before this time: 2026-01-31T09:00:00Z')
    .option('--older-than <length>', 'events received longer ago than this: 90d')
    .option('--dry-run', 'only count the events');
  handle<PruneOptions>(line, prune, pruneEvents);
}

const CALL_MS = 5 * 60_000;

/** One call removes a few thousand events, so calls are repeated until nothing is left. */
async function pruneEvents(call: Call<PruneOptions>): Promise<number> {
  const before = timeOf(call);
  const client = controlClient(call.context, call.options);
  const body = { before, dry_run: call.options.dryRun ?? false };
  let removed = 0;
  for (;;) {
    const asked = client.call('POST', '/v1/audit-events/prune', auditPruneReply, { body, timeoutMs: CALL_MS });
    const reply = await withProgress(call.print, 'looking at the events ...', asked);
    removed += reply.removed;
    if (reply.finished) return report(call, { ...reply, removed });
    call.print.note(`removed ${counted(removed, 'event')} so far`);
  }
}

function report({ print }: Call<PruneOptions>, reply: AuditPruneReply): number {
  const what = reply.dry_run
    ? `${counted(reply.removed, 'event')} would be removed`
    : `removed ${counted(reply.removed, 'event')}`;
  print.line(reply, `${what} received before ${reply.before}`);
  for (const { writer, sequence, reason } of reply.broken) {
    print.warn(
      `the chain of ${writer} is broken at event ${sequence} (${reason}): nothing after that event is removed`,
    );
  }
  return reply.broken.length === 0 ? EXIT.ok : EXIT.failed;
}

function timeOf({ options, context }: Call<PruneOptions>): string {
  const { before, olderThan } = options;
  if ((before === undefined) === (olderThan === undefined)) {
    throw new CliError(EXIT.usage, 'give either --before TIME or --older-than LENGTH, such as --older-than 90d');
  }
  if (before !== undefined) return valueOrUsageError('--before', parseTime(before, context.now()));
  const seconds = valueOrUsageError('--older-than', parseDuration(olderThan ?? ''));
  return new Date(context.now() - seconds * 1_000).toISOString();
}
