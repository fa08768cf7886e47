import type { z } from 'zod';
import type { AuditEvent, AuditEventData } from '../../../shared/model/audit_event.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import { auditEvent, isSidecarEventType } from '../../../shared/wire/audit_events.ts';
import { EVENTS_TYP, type EventsPayload } from '../../../shared/wire/channel.ts';
import { type ApiError, fieldProblems } from '../../../shared/wire/errors.ts';
import { findKnownIds } from '../../store/audit/audit_events.ts';
import { commitChained } from '../../kernel/commit.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { SidecarCaller } from '../sidecars/sidecar_calls.ts';

type Rejected = EventsPayload['rejected'][number];

/** How much of a path is kept. An agent may request a path of 64 KiB, and a page of the log must stay readable. */
const MAX_PATH_CHARACTERS = 4_096;
/** How many of a step's hosts are kept: more than any plan needs. An event may have a megabyte of them. */
const MAX_HOSTS_CHARACTERS = 8_192;

/**
 * Adds a batch of a sidecar's events to its chain, stamped with the sidecar's id. An event that is already in the log
 * is accepted and not written again. An event that can never be accepted is rejected by itself, so that it does not
 * block the others. The reply is signed, because the sidecar deletes accepted events. It contains the chain's head
 * before and after, which the sidecar remembers.
 */
export async function acceptEvents(
  context: ServiceContext,
  caller: SidecarCaller,
  events: readonly unknown[],
): Promise<Result<string, ApiError>> {
  const checked = events.map((event, index) => check(event, index));
  const rejected = checked.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]));
  const valid = new Map<string, AuditEvent>();
  for (const outcome of checked) {
    if (outcome.ok && !valid.has(outcome.value.id)) valid.set(outcome.value.id, stampEvent(caller, outcome.value));
  }
  const ids = [...valid.keys()];
  const chain = { enterpriseId: caller.enterpriseId, writer: caller.sidecarId };
  let isFirstAttempt = true;
  const written = await commitChained(context, chain, async () => {
    // Almost always none is in the log yet. If one is, the write conflicts and they are looked up.
    const known = isFirstAttempt ? NONE : await findKnownIds(context.database, caller.sidecarId, ids);
    isFirstAttempt = false;
    const fresh = [...valid.values()].filter((event) => !known.has(event.id));
    return ok({ statements: [], events: fresh, value: null });
  });
  if (!written.ok) return written;
  const { before, after } = written.value;
  const head = {
    writer: caller.sidecarId,
    sequence: after.sequence,
    hash: after.hash,
    previous: { sequence: before.sequence, hash: before.hash },
  };
  const payload: EventsPayload = { sidecar_id: caller.sidecarId, nonce: caller.nonce, accepted: ids, rejected, head };
  return ok(await context.controlPlane.sign(EVENTS_TYP, payload));
}

const NONE: ReadonlySet<string> = new Set();

function check(event: unknown, index: number): Result<z.output<typeof auditEvent>, Rejected> {
  const parsed = auditEvent.safeParse(event);
  if (parsed.success && isSidecarEventType(parsed.data.type)) return ok(parsed.data);
  const message = parsed.success
    ? `type: only the control plane writes ${parsed.data.type}`
    : fieldProblems(parsed.error)
        .map(({ field, message: problem }) => `${field === '' ? 'the event' : field}: ${problem}`)
        .join('; ');
  return { ok: false, error: { index, id: idOf(event), message } };
}

function idOf(event: unknown): string | null {
  return typeof event === 'object' && event !== null && 'id' in event && typeof event.id === 'string'
    ? event.id.slice(0, 64)
    : null;
}

function stampEvent(caller: SidecarCaller, event: z.output<typeof auditEvent>): AuditEvent {
  const data = Object.fromEntries(Object.entries(event.data).filter(([, value]) => value !== undefined));
  return { ...event, sidecar_id: caller.sidecarId, data: withShortHosts(withShortPath(data)) };
}

function withShortPath(data: AuditEventData): AuditEventData {
  const path = data['svc.proxy.upstream.path'];
  if (path === undefined || path.length <= MAX_PATH_CHARACTERS) return data;
  return { ...data, 'svc.proxy.upstream.path': `${path.slice(0, MAX_PATH_CHARACTERS).replace(/\p{Cs}$/u, '')}…` };
}

function withShortHosts(data: AuditEventData): AuditEventData {
  const hosts = data['svc.reach.hosts'];
  if (hosts === undefined) return data;
  let left = MAX_HOSTS_CHARACTERS;
  const kept = hosts.filter((host) => (left -= host.length) >= 0);
  if (kept.length === hosts.length) return data;
  return { ...data, 'svc.reach.hosts': [...kept, `… and ${hosts.length - kept.length} more`] };
}
