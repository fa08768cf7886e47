import { readAuditEventsPage } from '../../shared/wire/audit_events.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { certificateHints } from './certificate_hints.ts';
import { listTriedHosts, REFUSED_TYPES, refusedHostsLine } from './hosts/refused_hosts.ts';

/** For the last lines, for which no command should wait long. */
const MOST_EVENTS = 1_000;
const AT_END_MS = 5_000;

/**
 * Prints for a session that has ended which hosts it was refused, if it had a list of allowed ones, and at which a client refused
 * the certificate. The command's exit status counts, so a failure prints nothing.
 */
export async function printEndHints(call: Call, sessionId: string, hadList: boolean): Promise<void> {
  const query = { session: sessionId, type: hadList ? REFUSED_TYPES : 'sandbox.proxy.rejected' };
  const limits = { most: MOST_EVENTS, signal: AbortSignal.timeout(AT_END_MS) };
  try {
    const client = controlClient(call.context, call.options);
    const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query, limits);
    const ended = { sessionId, folder: call.context.workingDirectory };
    const refused = hadList ? refusedHostsLine(listTriedHosts(events), ended) : null;
    for (const line of [...(refused === null ? [] : [refused]), ...certificateHints(events)])
      call.print.note(`svc: ${line}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}
