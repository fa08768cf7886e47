import { readAuditEventsPage } from '../../../shared/wire/audit_events.ts';
import { controlClient } from '../../clients.ts';
import type { Call } from '../../command_line.ts';
import { CliError } from '../../exit_codes.ts';
import { type FetchLimits, fetchAllPages } from '../../terminal/fetch_all_pages.ts';
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
/** For the last line, for which no command should wait long. */
const MOST_EVENTS_AT_END = 1_000;
const AT_END_MS = 5_000;
const MOST_SHOWN = 5;
/** The events of refused hosts; those of refused ports are among the second ones. */
const REFUSED = 'sandbox.proxy.trust_denied,sandbox.proxy.rejected';
const TRIED_TYPES = `${REFUSED},sandbox.proxy.passthrough`;

/** The hosts that a session was refused or reached without a credential, by name. */
export function readTriedHosts(call: Call, sessionId: string): Promise<TriedHosts> {
  return readHosts(call, sessionId, TRIED_TYPES, { most: MOST_EVENTS });
}

async function readHosts(call: Call, session: string, type: string, limits: FetchLimits): Promise<TriedHosts> {
  const client = controlClient(call.context, call.options);
  const events = await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, { session, type }, limits);
  return { tried: listTriedHosts(events), complete: events.length < (limits.most ?? Infinity) };
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

/** Prints that line for a session that has ended. The command's exit status counts, so a failure prints nothing. */
export async function printRefusedHosts(call: Call, sessionId: string): Promise<void> {
  try {
    const limits = { most: MOST_EVENTS_AT_END, signal: AbortSignal.timeout(AT_END_MS) };
    const { tried } = await readHosts(call, sessionId, REFUSED, limits);
    const line = refusedHostsLine(tried, { sessionId, folder: call.context.workingDirectory });
    if (line !== null) call.print.note(`svc: ${line}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}
