import { readAuditEventsPage } from '../../../shared/wire/audit_events.ts';
import { controlClient } from '../../clients.ts';
import type { Call } from '../../command_line.ts';
import { fetchAllPages } from '../../terminal/fetch_all_pages.ts';
import { HTTPS_PORT, portOfHost } from '../../../shared/net/host_port.ts';
import { parseAllowedHost } from '../../../shared/resolve/admitted_host.ts';
import { quoteForShell } from './allowed_hosts.ts';

interface SeenEvent {
  readonly data: {
    readonly 'svc.proxy.upstream.host'?: string | undefined;
    readonly 'svc.proxy.reason'?: string | undefined;
    readonly 'svc.proxy.mediation'?: string | undefined;
    readonly 'svc.proxy.count'?: number | undefined;
  };
}

/** A host without a binding that a session tried, and how often. */
export interface TriedHost {
  readonly host: string;
  readonly refused: number;
  readonly passed: number;
}

/** The hosts that a session tried, from its newest events. */
interface TriedHosts {
  readonly tried: readonly TriedHost[];
  /** False if it has more events than were read. */
  readonly complete: boolean;
}

/** An agent chooses the hosts, so that their number has a limit. */
const MOST_EVENTS = 10_000;
const MOST_SHOWN = 5;
/** The events of refused hosts; those of refused ports are among the second ones. */
export const REFUSED_TYPES = 'sandbox.proxy.trust_denied,sandbox.proxy.rejected';
const TRIED_TYPES = `${REFUSED_TYPES},sandbox.proxy.passthrough`;

/** The hosts that a session was refused or reached without a credential, by name. */
export async function readTriedHosts(call: Call, session: string): Promise<TriedHosts> {
  const client = controlClient(call.context, call.options);
  const query = { session, type: TRIED_TYPES };
  const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query, { most: MOST_EVENTS });
  return { tried: listTriedHosts(events), complete: events.length < MOST_EVENTS };
}

/**
 * Only hosts that can be allowed, by name: a look-alike then stands beside the host that it imitates, and the agent cannot move
 * a host up by trying it often.
 */
export function listTriedHosts(events: readonly SeenEvent[]): readonly TriedHost[] {
  const found = new Map<string, TriedHost>();
  for (const { data } of events) {
    const host = data['svc.proxy.upstream.host'];
    const count = data['svc.proxy.count'] ?? 1;
    const refused = isRefusedHost(host, data['svc.proxy.reason']) ? count : 0;
    const passed = data['svc.proxy.mediation'] === 'passthrough' ? count : 0;
    if (host === undefined || refused + passed === 0 || !parseAllowedHost(host).ok) continue;
    const known = found.get(host) ?? { host, refused: 0, passed: 0 };
    found.set(host, { host, refused: known.refused + refused, passed: known.passed + passed });
  }
  return [...found.values()].toSorted((a, b) => (a.host < b.host ? -1 : 1));
}

/** A port is refused over plain HTTP too, where no port can be allowed: then the host has none. */
function isRefusedHost(host: string | undefined, reason: string | undefined): boolean {
  if (reason === 'egress_host_not_allowed') return true;
  return reason === 'connect_port_not_allowed' && host !== undefined && portOfHost(host) !== HTTPS_PORT;
}

/** The last line of a session that was refused hosts, with the command that proposes them; null if there is none. */
export function refusedHostsLine(
  tried: readonly TriedHost[],
  { sessionId, folder }: { readonly sessionId: string; readonly folder: string },
): string | null {
  const refused = tried.filter((each) => each.refused > 0);
  if (refused.length === 0) return null;
  const shown = refused.slice(0, MOST_SHOWN).map((each) => `${each.host} (${each.refused})`);
  const rest = refused.length > MOST_SHOWN ? ` and ${refused.length - MOST_SHOWN} more` : '';
  const hosts = refused.length === 1 ? 'a host' : `${refused.length} hosts`;
  return `refused ${hosts} that the agent chose: ${shown.join(', ')}${rest}. To allow some of them here: svc allow --from-session ${sessionId} --folder ${quoteForShell(folder)}`;
}
