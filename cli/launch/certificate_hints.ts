import { CERTIFICATE_REFUSED } from '../../shared/model/audit_event.ts';
import { parseTunnelHost } from '../../shared/net/tunnel_host.ts';
import { readAuditEventsPage, type readAuditEvent } from '../../shared/wire/audit_events.ts';
import type { z } from 'zod';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

type Told = Pick<z.infer<typeof readAuditEvent>, 'data'>;

/** A session with more such hosts has other problems, such as a client without the CA. */
const MOST_HINTS = 5;
/** For the last lines, for which no command should wait long. */
const MOST_EVENTS = 500;
const AT_END_MS = 5_000;

/** One line for each host without a binding at which a client refused the certificate of svc, with the command to tunnel it. */
export function certificateHints(events: readonly Told[]): readonly string[] {
  const hosts = events.flatMap(({ data }) => {
    const host = data['svc.proxy.upstream.host'];
    return data['svc.proxy.reason'] === CERTIFICATE_REFUSED && host !== undefined && parseTunnelHost(host).ok
      ? [host]
      : [];
  });
  return [...new Set(hosts)]
    .toSorted()
    .slice(0, MOST_HINTS)
    .map(
      (host) =>
        // An agent chooses the host: the line must not talk a person into giving up what svc reads there.
        `a client refused the certificate of svc at ${host}. If it accepts only the host's own, and nothing there has to be checked or recorded: svc tunnel add ${host}`,
    );
}

/** Prints the hints of a session that has ended. The command's exit status counts, so a failure prints nothing. */
export async function printCertificateHints(call: Call, sessionId: string): Promise<void> {
  const query = { session: sessionId, type: 'sandbox.proxy.rejected' };
  try {
    const client = controlClient(call.context, call.options);
    const limits = { most: MOST_EVENTS, signal: AbortSignal.timeout(AT_END_MS) };
    const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query, limits);
    for (const hint of certificateHints(events)) call.print.note(`svc: ${hint}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}
