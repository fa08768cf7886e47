import type { z } from 'zod';
import { ANSWERED_LOCALLY, TUNNEL_CLOSED } from '../../shared/model/audit_event.ts';
import { readAuditEventsPage, type readAuditEvent } from '../../shared/wire/audit_events.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { counted } from '../../shared/model/sentence.ts';

/** A session with more events than this is counted as "more than". */
const MOST_COUNTED = 10_000;
const COUNT_MS = 5_000;

/** The last line of an agent's run: what its session asked for. */
export async function printSummary(call: Call<{ readonly quiet?: boolean }>, sessionId: string): Promise<void> {
  const { context, options, print } = call;
  if (options.json === true || options.quiet === true) return;
  try {
    const client = controlClient(context, options);
    const events = await fetchAllPages(
      client,
      '/v1/audit-events',
      readAuditEventsPage,
      { session: sessionId },
      { most: MOST_COUNTED, signal: AbortSignal.timeout(COUNT_MS) },
    );
    print.note(`svc: ${countText(events)}; svc audit list --session ${sessionId}`);
  } catch (error) {
    // The agent's exit status counts, not this line.
    if (!(error instanceof CliError)) throw error;
  }
}

/** `12 requests, 9 with a credential, 0 refused`. A connection that passes through unread counts as one request. */
export function countText(events: readonly Pick<z.infer<typeof readAuditEvent>, 'data'>[]): string {
  const ended = events.filter(({ data }) => data['svc.proxy.reason'] === TUNNEL_CLOSED).length;
  const sent = events.filter(({ data }) => data['svc.proxy.reason'] !== ANSWERED_LOCALLY);
  const count = (...kinds: readonly string[]): number =>
    sent.filter(({ data }) => kinds.includes(data['svc.proxy.mediation'] ?? '')).length;
  const given = count('binding', 'connector');
  const refused = count('refused');
  const all = given + refused + count('passthrough') - ended + (events.length - sent.length);
  const more = events.length >= MOST_COUNTED ? 'more than ' : '';
  return `${more}${counted(all, 'request')}, ${given} with a credential, ${refused} refused`;
}
