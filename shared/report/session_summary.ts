import type { AuditEventData } from '../model/audit_event.ts';
import type { StoredAuditEvent } from '../wire/audit_events.ts';
import { REQUEST_DECISIONS } from './request_decision.ts';

type Event = Pick<StoredAuditEvent, 'id' | 'type' | 'time' | 'data'>;

/** What happened with a request. */
export type Decision = 'added' | 'passed' | 'refused';

/** An event of a request. */
export type DecidedEvent = Pick<StoredAuditEvent, 'type' | 'data'>;

/** To a session, a credential is a credential, and a connection that is carried unread is one more that passed. */
export function sessionDecisionOf({ type }: Pick<DecidedEvent, 'type'>): Decision | null {
  if (type === 'sandbox.proxy.tunnelled') return 'passed';
  const decision = REQUEST_DECISIONS.get(type) ?? null;
  return decision === 'connector' ? 'added' : decision;
}

/** A credential that a session used, or a host that it reached. */
export interface SessionUse {
  readonly name: string;
  /** What it was used with, each once. */
  readonly on: readonly string[];
  readonly count: number;
  readonly lastAt: string;
}

/** Consecutive events that say the same. */
export interface SessionStep {
  readonly first: Event;
  readonly count: number;
  readonly lastAt: string;
}

export interface SessionSummary {
  readonly counts: { readonly [D in Decision]: number };
  /** Most used first. */
  readonly credentials: readonly SessionUse[];
  readonly hosts: readonly SessionUse[];
  /** Oldest first. */
  readonly steps: readonly SessionStep[];
}

/** What a session did, from its events in any order. */
export function summariseSession(events: readonly Event[]): SessionSummary {
  const ordered = events.toSorted((a, b) => (a.time < b.time ? -1 : 1));
  const counts = { added: 0, passed: 0, refused: 0 };
  for (const event of ordered) {
    const decision = sessionDecisionOf(event);
    if (decision !== null) counts[decision] += requestCountOf(event.data);
  }
  return {
    counts,
    credentials: countUses(ordered, credentialOf, hostOf),
    hosts: countUses(ordered, hostOf, sessionDecisionOf),
    steps: toSteps(ordered),
  };
}

/** An event may stand for several requests. */
export function requestCountOf(data: AuditEventData): number {
  return data['svc.proxy.count'] ?? 1;
}

/**
 * Only of events in which a credential was sent or handed out; a refusal may name one that was not. An event of a binding names
 * the binding, whose credential may have been another one then.
 */
function credentialOf(event: Event): string | null {
  const { type, data } = event;
  const isUse = sessionDecisionOf(event) === 'added' || type === 'sandbox.proxy.credential_unsealed';
  if (!isUse) return null;
  const binding = data['svc.proxy.binding.host'];
  const reference = data['svc.proxy.credential_ref'] ?? data['svc.connector.credential_ref'];
  return reference ?? (binding === undefined ? null : `binding of ${binding}`);
}

function hostOf({ data }: Event): string | null {
  return data['svc.proxy.upstream.host'] ?? null;
}

function countUses(
  events: readonly Event[],
  nameOf: (event: Event) => string | null,
  onOf: (event: Event) => string | null,
): SessionUse[] {
  const uses = new Map<string, { on: Set<string>; count: number; lastAt: string }>();
  for (const event of events) {
    const name = nameOf(event);
    if (name === null) continue;
    const use = uses.get(name) ?? { on: new Set<string>(), count: 0, lastAt: event.time };
    const on = onOf(event);
    if (on !== null) use.on.add(on);
    uses.set(name, { on: use.on, count: use.count + requestCountOf(event.data), lastAt: event.time });
  }
  return [...uses]
    .map(([name, { on, count, lastAt }]) => ({ name, on: [...on], count, lastAt }))
    .toSorted((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

/** What makes two events say the same. */
const SAME_KEYS = [
  'svc.proxy.method',
  'svc.proxy.upstream.host',
  'svc.proxy.upstream.path',
  'svc.proxy.upstream.status',
  'svc.proxy.reason',
  'svc.connector.operation',
  'svc.mcp.server',
  'svc.mcp.tool',
  'svc.mcp.outcome',
] as const satisfies readonly (keyof AuditEventData)[];

function toSteps(ordered: readonly Event[]): SessionStep[] {
  const steps: { first: Event; count: number; lastAt: string; key: string }[] = [];
  for (const event of ordered) {
    const key = JSON.stringify([event.type, ...SAME_KEYS.map((each) => event.data[each] ?? null)]);
    const last = steps.at(-1);
    if (last !== undefined && last.key === key) {
      last.count += requestCountOf(event.data);
      last.lastAt = event.time;
    } else steps.push({ first: event, count: requestCountOf(event.data), lastAt: event.time, key });
  }
  return steps.map(({ first, count, lastAt }) => ({ first, count, lastAt }));
}
