import { PLACEHOLDER_UNBOUND } from '../../shared/model/audit_event.ts';
import { readAuditEventsPage, type readAuditEvent } from '../../shared/wire/audit_events.ts';
import type { z } from 'zod';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';

type Told = Pick<z.infer<typeof readAuditEvent>, 'data'>;

/** A session with more unbound hosts than this has other problems. */
const MOST_HINTS = 5;

/**
 * One line for each unbound host to which a session carried a placeholder. `expected` hosts need no word: the agent is known
 * to send its key there too, where it is of no use.
 */
export function placeholderHints(events: readonly Told[], expected: readonly string[] = []): readonly string[] {
  const hosts = new Map<string, string>();
  for (const { data } of events) {
    const host = data['svc.proxy.upstream.host'];
    if (data['svc.proxy.reason'] !== PLACEHOLDER_UNBOUND || host === undefined || expected.includes(host)) continue;
    hosts.set(host, data['svc.proxy.binding.host'] ?? 'another host');
  }
  return [...hosts].slice(0, MOST_HINTS).map(
    ([host, bound]) =>
      // An agent chooses the host: the line must not talk a person into sending a credential to it.
      `bind ${host}? The placeholder of ${bound} was sent there. Only if it belongs to the same service: svc binding add ${host} --credential PATH --scheme SCHEME`,
  );
}

/** Prints the hints of a session that has ended. The command's exit status counts, so a failure prints nothing. */
export async function printPlaceholderHints(
  call: Call,
  sessionId: string,
  expected: readonly string[] = [],
): Promise<void> {
  const query = { session: sessionId, type: 'sandbox.proxy.passthrough', limit: 500 };
  try {
    const client = controlClient(call.context, call.options);
    const { items } = await client.call('GET', '/v1/audit-events', readAuditEventsPage, { query });
    for (const hint of placeholderHints(items, expected)) call.print.note(`svc: ${hint}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}
