import type { Command } from 'commander';
import { decodeJwt } from 'jose';
import { z } from 'zod';
import { sha256Hex } from '../../machine/sha256.ts';
import type { WalkBreak } from '../../shared/audit/chain_walk.ts';
import { exportedLog } from '../../shared/audit/exported_log.ts';
import { readAuditEvent } from '../../shared/wire/audit_events.ts';
import { auditStatement, auditStatementReply } from '../../shared/wire/audit_heads.ts';
import { MAX_PAGE } from '../../shared/wire/primitives.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { counted } from '../../shared/model/sentence.ts';

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

/** Fails if the control plane does not have every event that its statement names. */
async function exportLog(call: Call): Promise<undefined> {
  const { print } = call;
  const client = controlClient(call.context, call.options);
  const statement = await client.call('GET', '/v1/audit-events/statement', auditStatementReply, { timeoutMs: CALL_MS });
  const { chains } = auditStatement.parse(decodeJwt(statement.signed));
  const read = async (writer: string, query: { readonly after: number; readonly limit: number }) => {
    const path = `/v1/audit-events/chains/${encodeURIComponent(writer)}`;
    return (await client.call('GET', path, chainPage, { query })).items;
  };
  let written = 0;
  let noted = 0;
  for await (const part of exportedLog({ statement, chains }, { read, eventsPerRead: MAX_PAGE, sha256Hex })) {
    if (!part.ok) throw incomplete(part.error);
    print.raw(part.value.text);
    written = part.value.events;
    if (written - noted < EVENTS_PER_NOTE) continue;
    noted = written;
    print.note(`exported ${written} events so far`);
  }
  print.note(
    `exported ${counted(written, 'event')} in ${counted(chains.length, 'chain')}; check the file with: svc audit verify --file FILE`,
  );
}

const EVENTS_PER_NOTE = 10_000;

function incomplete({ writer, sequence, reason }: WalkBreak): CliError {
  return new CliError(EXIT.failed, `the export is not complete: ${reason} at event ${sequence} of ${writer}`, [
    'If old events were pruned meanwhile, export again. Otherwise look at the log with: svc audit verify',
  ]);
}
