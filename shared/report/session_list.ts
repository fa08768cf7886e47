import type { StoredAuditEvent } from '../wire/audit_events.ts';
import { type Decision, type DecidedEvent, requestCountOf, sessionDecisionOf } from './session_summary.ts';

/** Requests by what was decided about them. */
export type DecisionCounts = Readonly<Record<Decision, number>>;

/** What a session did, in a line. */
export interface ListedSession {
  readonly id: string;
  /** Null if several machines reported its events: each names its sessions itself. */
  readonly sidecar: string | null;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly counts: DecisionCounts;
  /** It ran steps of a plan. */
  readonly isPlan: boolean;
}

type Event = Pick<StoredAuditEvent, 'type' | 'time' | 'data' | 'session_id' | 'sidecar_id'>;

const REACH = 'flightplan.launch.reach';

/** The sessions of these events, the one with the newest event first. The events are newest first. */
export function listSessionsOf(events: readonly Event[]): readonly ListedSession[] {
  const sessions = new Map<string, ListedSession>();
  for (const event of events) {
    const { session_id: id, sidecar_id: sidecar, time, type } = event;
    if (id === null) continue;
    const known = sessions.get(id) ?? { id, sidecar, lastAt: time, counts: NONE, isPlan: false };
    const counts = plus(known.counts, event);
    const isSame = known.sidecar === sidecar;
    sessions.set(id, {
      ...known,
      sidecar: isSame ? sidecar : null,
      firstAt: time,
      counts,
      isPlan: known.isPlan || type === REACH,
    });
  }
  return [...sessions.values()];
}

/** A step of a plan as the audit log knows it. Its exit code is not in the log. */
export interface PlanStep {
  readonly id: string;
  readonly state: 'started' | 'not_started' | 'unknown';
  readonly at: string;
  readonly effect: string | null;
  readonly hosts: readonly string[];
  /** Under a scope of its own, with the hosts of the verified lock. */
  readonly isEnforced: boolean;
  /** The container also had the engine's network, so the step could bypass the proxy. */
  readonly isOpen: boolean;
  /** Its requests, as far as their events were given. */
  readonly counts: DecisionCounts;
  /** The hosts that it was refused, each once. */
  readonly refusedHosts: readonly string[];
}

/** The steps of a session's events, in the order in which they started. The events are newest first. */
export function listPlanSteps(events: readonly Event[]): readonly PlanStep[] {
  // Those of one millisecond stay in the order of the log: of two statements about a step, the later one counts.
  const ordered = events.toReversed().toSorted((a, b) => Date.parse(a.time) - Date.parse(b.time));
  const steps = new Map<string, PlanStep>();
  for (const { type, time, data } of ordered) {
    const id = data['svc.step.id'];
    if (type !== REACH || id === undefined) continue;
    steps.set(id, {
      id,
      state: stateOf(data['svc.proxy.reason']),
      at: time,
      effect: data['svc.reach.effect'] ?? null,
      hosts: data['svc.reach.hosts'] ?? [],
      isEnforced: data['svc.reach.enforced'] === true,
      isOpen: data['svc.reach.egress'] === 'open',
      counts: NONE,
      refusedHosts: [],
    });
  }
  for (const event of ordered) {
    const step = steps.get(event.data['svc.step.id'] ?? '');
    if (step !== undefined) steps.set(step.id, withRequest(step, event));
  }
  return [...steps.values()];
}

function stateOf(reason: string | undefined): PlanStep['state'] {
  if (reason === 'step_not_started') return 'not_started';
  return reason === 'step_start_unknown' ? 'unknown' : 'started';
}

function withRequest(step: PlanStep, event: Event): PlanStep {
  const host = event.data['svc.proxy.upstream.host'];
  const isRefused = sessionDecisionOf(event) === 'refused' && host !== undefined;
  const refusedHosts = isRefused ? [...new Set([...step.refusedHosts, host])] : step.refusedHosts;
  return { ...step, counts: plus(step.counts, event), refusedHosts };
}

const NONE: DecisionCounts = { added: 0, passed: 0, refused: 0 };

function plus(counts: DecisionCounts, event: DecidedEvent): DecisionCounts {
  const decision = sessionDecisionOf(event);
  return decision === null ? counts : { ...counts, [decision]: counts[decision] + requestCountOf(event.data) };
}
