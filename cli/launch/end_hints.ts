import { readAuditEventsPage, type readAuditEvent } from '../../shared/wire/audit_events.ts';
import type { z } from 'zod';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { certificateHints } from './certificate_hints.ts';
import { listTriedHosts, REFUSED_TYPES, refusedHostsLine } from './hosts/refused_hosts.ts';
import { placeholderHints } from './placeholder_hints.ts';

/** For the last lines, for which no command should wait long. */
const MOST_EVENTS = 10_000;
const AT_END_MS = 5_000;
const PASSED = 'sandbox.proxy.passthrough';

/** A session whose hints are shown. */
interface HintedSession {
  readonly sessionId: string;
  /** True if it reached only the hosts of a list. */
  readonly hadList: boolean;
  /** False if it has no placeholder that could have gone astray. */
  readonly hadPlaceholders?: boolean;
  /** Unbound hosts to which its agent is known to send its placeholder. */
  readonly expectedHosts?: readonly string[] | undefined;
}

/**
 * The hints of a session, from one list of its events: which unbound hosts got a placeholder, which hosts it was refused, if it
 * had a list of allowed ones, and at which a client refused the certificate.
 */
export async function readEndHints(call: Call, session: HintedSession): Promise<readonly string[]> {
  const { sessionId, hadList, hadPlaceholders = true } = session;
  const types = [hadList ? REFUSED_TYPES : 'sandbox.proxy.rejected', ...(hadPlaceholders ? [PASSED] : [])];
  const query = { session: sessionId, type: types.join(',') };
  const limits = { most: MOST_EVENTS, signal: AbortSignal.timeout(AT_END_MS) };
  const client = controlClient(call.context, call.options);
  const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query, limits);
  return hintsOf(events, session, call.context.workingDirectory);
}

function hintsOf(
  events: readonly z.infer<typeof readAuditEvent>[],
  { sessionId, hadList, hadPlaceholders = true, expectedHosts }: HintedSession,
  folder: string,
): readonly string[] {
  const refused = hadList ? refusedHostsLine(listTriedHosts(events), { sessionId, folder }) : null;
  return [
    ...(hadPlaceholders ? placeholderHints(events, expectedHosts) : []),
    ...(refused === null ? [] : [refused]),
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
