import { readAuditEventsPage, type readAuditEvent } from '../../shared/wire/audit_events.ts';
import type { z } from 'zod';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { certificateHints, plainHttpHints } from './host_hints.ts';
import { listTriedHosts, REFUSED_TYPES, refusedHostsLine } from './hosts/refused_hosts.ts';
import { placeholderHints } from './placeholder_hints.ts';

/** For the last lines, for which no command should wait long. */
const MOST_EVENTS = 10_000;
const AT_END_MS = 5_000;
const PASSED = 'sandbox.proxy.passthrough';

/** A session whose hints are shown. */
interface HintedSession {
  readonly sessionId: string;
  /** False if it has no placeholder that could have gone astray. */
  readonly hadPlaceholders?: boolean;
  /** Unbound hosts to which its agent is known to send its placeholder. */
  readonly expectedHosts?: readonly string[] | undefined;
}

/**
 * The hints of a session, from one list of its events: which unbound hosts got a placeholder, which hosts, ports and plain HTTP
 * it was refused, and at which hosts a client refused the certificate.
 */
export async function readEndHints(call: Call, session: HintedSession): Promise<readonly string[]> {
  const { sessionId, hadPlaceholders = true } = session;
  const types = [REFUSED_TYPES, ...(hadPlaceholders ? [PASSED] : [])];
  const query = { session: sessionId, type: types.join(',') };
  const limits = { most: MOST_EVENTS, signal: AbortSignal.timeout(AT_END_MS) };
  const client = controlClient(call.context, call.options);
  const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query, limits);
  return hintsOf(events, session, call.context.workingDirectory);
}

function hintsOf(
  events: readonly z.infer<typeof readAuditEvent>[],
  { sessionId, hadPlaceholders = true, expectedHosts }: HintedSession,
  folder: string,
): readonly string[] {
  const refused = refusedHostsLine(listTriedHosts(events), { sessionId, folder });
  return [
    ...(hadPlaceholders ? placeholderHints(events, expectedHosts) : []),
    ...(refused === null ? [] : [refused]),
    ...plainHttpHints(events),
    ...certificateHints(events),
  ];
}

/** Prints the hints of a session that has ended. The command's exit status counts, so a failure prints nothing. */
export async function printEndHints(call: Call, session: HintedSession): Promise<void> {
  try {
    for (const hint of await readEndHints(call, session)) call.print.note(`svc: ${hint}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}
