import { auditEventsPage } from '../../shared/wire/audit_events.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

interface SeenEvent {
  readonly data: {
    readonly 'svc.proxy.upstream.host'?: string | undefined;
    readonly 'svc.proxy.reason'?: string | undefined;
    readonly 'svc.proxy.mediation'?: string | undefined;
  };
}

/** A host without a binding that a session tried, and how often. */
export interface TriedHost {
  readonly host: string;
  readonly refused: number;
  readonly passed: number;
}

/** An agent chooses the hosts, so that their number has a limit. */
const MOST_EVENTS = 10_000;
const MOST_SHOWN = 5;

/** The hosts that a session was refused or reached without a credential, the most used first. */
export async function readTriedHosts(call: Call, sessionId: string): Promise<readonly TriedHost[]> {
  const client = controlClient(call.context, call.options);
  const query = { session: sessionId, type: 'sandbox.proxy.trust_denied,sandbox.proxy.passthrough' };
  return triedHosts(await fetchAllPages(client, '/v1/audit-events', auditEventsPage, query, MOST_EVENTS));
}

export function triedHosts(events: readonly SeenEvent[]): readonly TriedHost[] {
  const found = new Map<string, TriedHost>();
  for (const { data } of events) {
    const host = data['svc.proxy.upstream.host'];
    const refused = data['svc.proxy.reason'] === 'egress_host_not_allowed' ? 1 : 0;
    const passed = data['svc.proxy.mediation'] === 'passthrough' ? 1 : 0;
    if (host === undefined || refused + passed === 0) continue;
    const known = found.get(host) ?? { host, refused: 0, passed: 0 };
    found.set(host, { host, refused: known.refused + refused, passed: known.passed + passed });
  }
  return [...found.values()].toSorted((a, b) => b.refused + b.passed - a.refused - a.passed);
}

/** The last line of a session that was refused hosts, with the command that proposes them; null if there is none. */
export function refusedHostsLine(tried: readonly TriedHost[], sessionId: string): string | null {
  const refused = tried.filter((each) => each.refused > 0);
  if (refused.length === 0) return null;
  const shown = refused.slice(0, MOST_SHOWN).map((each) => `${each.host} (${each.refused})`);
  const rest = refused.length > MOST_SHOWN ? ` and ${refused.length - MOST_SHOWN} more` : '';
  return `refused ${refused.length === 1 ? 'a host' : `${refused.length} hosts`}: ${shown.join(', ')}${rest}. To allow some of them here: svc allow --from-session ${sessionId}`;
}

/** Prints that line for a session that has ended. The command's exit status counts, so a failure prints nothing. */
export async function printRefusedHosts(call: Call, sessionId: string): Promise<void> {
  try {
    const line = refusedHostsLine(await readTriedHosts(call, sessionId), sessionId);
    if (line !== null) call.print.note(`svc: ${line}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}
