import type { AuditEvent, AuditEventData, AuditEventType } from '../model/audit_event.ts';
import type { HostBinding } from '../model/host_binding.ts';
import type { RefusalReason } from '../model/refusal.ts';
import { REFUSALS } from '../model/refusal.ts';

/** What an exchange event says of its request. None of it can hold a secret. */
export interface ExchangeFacts {
  readonly sessionId: string | null;
  /** The plan step whose scope the tunnel was opened with. */
  readonly stepId?: string | undefined;
  readonly host: string | null;
  readonly method: string | null;
  /** Without the query. */
  readonly path: string | null;
  readonly binding: HostBinding | null;
}

/**
 * What ends an exchange without an answer of ours: the client does not finish its TLS handshake, or goes away before there
 * is an answer, or a bug. The request may have been sent with its credential, so it is recorded all the same.
 */
export type UnansweredReason = 'client_tls_failed' | 'client_gone' | 'internal_error';

export type ExchangeResult =
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'unanswered'; readonly reason: UnansweredReason }
  | { readonly kind: 'replied'; readonly mediation: 'binding' | 'passthrough' | 'foreign'; readonly status: number };

/** An event as a writer hands it to the sink, which adds the id, the time and the sidecar. */
export type UnstampedEvent = Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>;

/** Longer paths are cut: the audit log is no store for what an agent puts into its URLs. */
const MOST_PATH_CHARACTERS = 2048;

const REPLIED: Readonly<Record<'binding' | 'passthrough' | 'foreign', AuditEventType>> = {
  binding: 'sandbox.proxy.binding_injected',
  passthrough: 'sandbox.proxy.passthrough',
  foreign: 'sandbox.proxy.foreign_credential_kept',
};

/**
 * The audit event of one exchange (specification section 6), or null for a refusal that is only counted. It names method,
 * host, path and status, and for a bound request the pattern, scheme and emit mechanism; never a credential reference.
 */
export function exchangeEvent(facts: ExchangeFacts, result: ExchangeResult): UnstampedEvent | null {
  const type = eventType(result);
  if (type === null) return null;
  return {
    type,
    session_id: facts.sessionId,
    actor: facts.sessionId === null ? null : 'session',
    data: dataOf(facts, result),
  };
}

function eventType(result: ExchangeResult): AuditEventType | null {
  if (result.kind === 'replied') return REPLIED[result.mediation];
  return result.kind === 'unanswered' ? 'sandbox.proxy.rejected' : REFUSALS[result.reason].event;
}

/** Member by member: one is made for every request, and spreading a dozen small objects costs as much as sending it. */
function dataOf({ stepId, host, method, path, binding }: ExchangeFacts, result: ExchangeResult): AuditEventData {
  const data: Writable<AuditEventData> = {
    'svc.proxy.source': 'transparent_connect_tls',
    'svc.proxy.mediation': mediationOf(result),
  };
  if (method !== null) data['svc.proxy.method'] = method.slice(0, 64);
  if (host !== null) data['svc.proxy.upstream.host'] = host;
  if (path !== null) data['svc.proxy.upstream.path'] = path.slice(0, MOST_PATH_CHARACTERS);
  if (result.kind === 'replied') data['svc.proxy.upstream.status'] = result.status;
  else data['svc.proxy.reason'] = result.reason;
  if (binding !== null) {
    data['svc.proxy.binding.host'] = binding.host;
    data['svc.proxy.binding.scheme'] = binding.injection.scheme;
    data['svc.proxy.emit'] = binding.emit.mechanism;
  }
  if (stepId !== undefined) data['svc.step.id'] = stepId;
  return data;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function mediationOf(result: ExchangeResult): 'binding' | 'passthrough' | 'refused' {
  if (result.kind !== 'replied') return 'refused';
  return result.mediation === 'binding' ? 'binding' : 'passthrough';
}
