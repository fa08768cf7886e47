import type { Command } from 'commander';
import { decodeJwt } from 'jose';
import { z } from 'zod';
import { sha256Hex } from '../../machine/sha256.ts';
import { ChainWalk, type StatedChain, type WalkBreak } from '../../shared/audit/chain_walk.ts';
import { readAuditEvent } from '../../shared/wire/audit_events.ts';
import { auditStatement, auditStatementReply } from '../../shared/wire/audit_heads.ts';
import { MAX_PAGE } from '../../shared/wire/primitives.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** `svc audit export`. */
export function addAuditExportCommand(line: CommandLine, audit: Command): void {
  const command = audit
    .command('export')
    .description(
      'export every event with a signed statement of the chains, one JSON document per line; svc audit verify --file checks it anywhere',
    );
  handle(line, command, exportLog);
}

const CALL_MS = 5 * 60_000;
const chainPage = z.object({ items: z.array(readAuditEvent) });

/** The statement, then each chain's events, oldest first. What is written is checked, so that an export is whole or fails. */
async function exportLog(call: Call): Promise<undefined> {
  const { print } = call;
  const client = controlClient(call.context, call.options);
  const write = (kind: string, item: object): void => print.raw(`${JSON.stringify({ kind, ...item })}\n`);
  const reply = await client.call('GET', '/v1/audit-events/statement', auditStatementReply, { timeoutMs: CALL_MS });
  const { chains } = auditStatement.parse(decodeJwt(reply.signed));
  write('audit_statement', reply);
  const walk = new ChainWalk(chains, sha256Hex);
  for (const chain of chains) {
    for await (const event of eventsOf(client, chain)) {
      failIfBroken(walk.take(event));
      write('audit_event', event);
      if (walk.events % EVENTS_PER_NOTE === 0) print.note(`exported ${walk.events} events so far`);
    }
  }
  failIfBroken(walk.finish());
  print.note(
    `exported ${walk.events} events in ${chains.length} chains; check the file with: svc audit verify --file FILE`,
  );
}

const EVENTS_PER_NOTE = 10_000;

/** Reads page by page: a log may be larger than memory. */
async function* eventsOf(client: HttpClient, { writer, sequence, beginning }: StatedChain) {
  let after = beginning.sequence;
  while (after < sequence) {
    const limit = Math.min(MAX_PAGE, sequence - after);
    const path = `/v1/audit-events/chains/${encodeURIComponent(writer)}`;
    const { items } = await client.call('GET', path, chainPage, { query: { after, limit } });
    yield* items;
    const last = items.at(-1);
    if (last === undefined) return;
    after = last.sequence;
  }
}

function failIfBroken(broken: WalkBreak | null): void {
  if (broken === null) return;
  const { writer, sequence, reason } = broken;
  throw new CliError(EXIT.failed, `the export is not complete: ${reason} at event ${sequence} of ${writer}`, [
    'If old events were pruned meanwhile, export again. Otherwise look at the log with: svc audit verify',
  ]);
}
