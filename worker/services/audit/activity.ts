import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import { REQUEST_DECISIONS, type RequestDecision } from '../../../shared/report/request_decision.ts';
import { KEPT_MINUTES } from '../../../shared/report/request_minutes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listRequestMinutes } from '../../store/audit/request_minutes.ts';
import { listAuditPage } from './audit_log.ts';
import { type describeSessions, idsIn } from './names.ts';

/** A session is shown as active for so long after a request. */
const ACTIVE_MS = 5 * 60_000;
const MOST_HOSTS = 8;
const MOST_AGENTS = 8;

type Counts = Readonly<Record<RequestDecision, number>>;

interface HostActivity {
  readonly host: string;
  readonly requests: number;
  readonly refused: number;
}

interface AgentActivity {
  readonly session: string;
  readonly sidecar: string | null;
  readonly requests: number;
  readonly lastAt: string;
  readonly lastHost: string | null;
}

/** What agents do: for the first page. */
export interface Activity {
  /** The start of the first minute, in milliseconds. */
  readonly beginsMs: number;
  /** Each minute of the last 24 hours. */
  readonly minutes: readonly Counts[];
  /** Of the newest requests. */
  readonly hosts: readonly HostActivity[];
  /** Of how many requests that is. */
  readonly counted: number;
  readonly agents: readonly AgentActivity[];
  readonly newest: StoredAuditEvent | null;
}

/** Costs the same whatever the size of the log: it reads one row for each minute and outcome, and the newest 500 requests. */
export async function describeActivity(context: ServiceContext, caller: Caller): Promise<Activity> {
  const nowMs = context.clock.now();
  const first = Math.floor(nowMs / 60_000) - KEPT_MINUTES + 1;
  const [rows, page] = await Promise.all([
    listRequestMinutes(context.database, caller.enterpriseId, first),
    listAuditPage(context, caller, { limit: MAX_PAGE, type: [...REQUEST_DECISIONS.keys()].join(',') }),
  ]);
  const minutes = Array.from({ length: KEPT_MINUTES }, () => ({ added: 0, connector: 0, passed: 0, refused: 0 }));
  for (const { minute, decision, requests } of rows) {
    const counts = minutes[minute - first];
    if (counts !== undefined) counts[decision] += requests;
  }
  const events = page.ok ? page.value.items : [];
  return {
    beginsMs: first * 60_000,
    minutes,
    hosts: topHosts(events),
    counted: events.length,
    agents: activeAgents(events, nowMs),
    newest: events[0] ?? null,
  };
}

function topHosts(events: readonly StoredAuditEvent[]): readonly HostActivity[] {
  const byHost = new Map<string, HostActivity>();
  for (const { type, data } of events) {
    const host = data['svc.proxy.upstream.host'];
    if (host === undefined) continue;
    const { requests, refused } = byHost.get(host) ?? { requests: 0, refused: 0 };
    const isRefused = REQUEST_DECISIONS.get(type) === 'refused';
    byHost.set(host, { host, requests: requests + 1, refused: refused + Number(isRefused) });
  }
  return [...byHost.values()].toSorted((a, b) => b.requests - a.requests).slice(0, MOST_HOSTS);
}

/** The sessions with a request in the last minutes, the newest first. */
function activeAgents(events: readonly StoredAuditEvent[], nowMs: number): readonly AgentActivity[] {
  const bySession = new Map<string, AgentActivity>();
  for (const { session_id: session, sidecar_id: sidecar, time, data } of events) {
    if (session === null || Date.parse(time) < nowMs - ACTIVE_MS) continue;
    const known = bySession.get(session);
    const lastHost = data['svc.proxy.upstream.host'] ?? null;
    bySession.set(session, {
      session,
      sidecar,
      lastAt: time,
      lastHost,
      ...known,
      requests: (known?.requests ?? 0) + 1,
    });
  }
  return [...bySession.values()].slice(0, MOST_AGENTS);
}

/** The ids that a page names. */
export function idsOfActivity({ agents, newest }: Activity): readonly string[] {
  const ofAgents = agents.flatMap(({ session, sidecar }) => (sidecar === null ? [session] : [session, sidecar]));
  return [...ofAgents, ...(newest === null ? [] : idsIn(newest))];
}

/** The sessions that a page names, and where they ran. */
export function eventsOfActivity({ agents, newest }: Activity): Parameters<typeof describeSessions>[2] {
  const ofAgents = agents.map(({ session, sidecar }) => ({ session_id: session, sidecar_id: sidecar }));
  return newest === null ? ofAgents : [...ofAgents, newest];
}
