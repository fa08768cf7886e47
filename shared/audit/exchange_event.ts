import { redactPath, auditFields } from '../connect/audit_fields.ts';
import type { ConnectorOperation } from '../connect/connector_index.ts';
import {
  type ACCOUNT_ASKED,
  type ANSWERED_LOCALLY,
  type CERTIFICATE_REFUSED,
  type LOGIN_CAPTURED,
  PLACEHOLDER_UNBOUND,
  TUNNEL_CLOSED,
  TUNNEL_OPENED,
  type AuditEvent,
  type AuditEventData,
  type AuditEventType,
  type ProxySource,
} from '../model/audit_event.ts';
import type { InstalledConnector } from '../model/connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import type { RefusalReason } from '../model/refusal.ts';
import { REFUSALS } from '../model/refusal.ts';
import { formatVaultReference } from '../model/vault_path.ts';
import { credentialsIssuedAt } from '../net/credential_issuer.ts';

/** The operation of a connector that a request is, for its event. */
export interface OperationFacts {
  readonly match: ConnectorOperation;
  /** The query and body inputs that the request has, as `<place>.<input>`. */
  readonly givenInputs: ReadonlySet<string>;
  readonly approvalId: string | null;
}

/** The client certificate of a request, for its event: which secret in which version, never a key. */
export interface CertificateFacts {
  readonly reference: string;
  /** Null: nothing is stored there. */
  readonly version: string | null;
}

/** The request's part of an exchange event. Contains no secret. */
export interface ExchangeFacts {
  /** The endpoint it came through; by default the transparent proxy. */
  readonly source?: ProxySource | undefined;
  readonly sessionId: string | null;
  /** The plan step whose scope opened the tunnel. */
  readonly stepId?: string | undefined;
  readonly host: string | null;
  readonly method: string | null;
  /** Without the query. */
  readonly path: string | null;
  readonly binding: HostBinding | null;
  /** The binding whose placeholder a request carries to a host without a binding. */
  readonly stray?: HostBinding | undefined;
  readonly operation?: OperationFacts | null;
  /** The client certificate with which the upstream connection was, or was to be, opened. */
  readonly certificate?: CertificateFacts | undefined;
  /** The tool name that the caller of a run by name gave. */
  readonly tool?: string | undefined;
  /** The connectors whose GraphQL endpoint the request was sent to, if it is none of their operations. */
  readonly connector?: InstalledConnector | null;
}

/** The refusals of an operation run, besides those of every request (design section 7). */
export type RunRefusalReason =
  | RefusalReason
  | 'invalid_args'
  | 'binding_required'
  | 'connector_operation_not_found'
  | 'upstream_response_too_large';

/**
 * What ends an exchange without an answer: the client does not finish its TLS handshake or disconnects early, or a bug. The
 * request may have been sent with its credential, so it is recorded.
 */
type UnansweredReason = 'client_tls_failed' | typeof CERTIFICATE_REFUSED | 'client_gone' | 'internal_error';

export type ExchangeResult =
  | { readonly kind: 'refused'; readonly reason: RunRefusalReason }
  /** svc answered an operation's request itself. Nothing was forwarded, so there is no status of an upstream. */
  | { readonly kind: 'answered'; readonly reason: typeof ANSWERED_LOCALLY }
  | { readonly kind: 'unanswered'; readonly reason: UnansweredReason }
  /**
   * A step of a new login: it was forwarded without a credential, and the tokens in its reply were stored; or the sidecar asked
   * whose they are. The status is the upstream's.
   */
  | {
      readonly kind: 'captured';
      readonly reason: typeof LOGIN_CAPTURED | typeof ACCOUNT_ASKED;
      readonly status: number;
    }
  | {
      readonly kind: 'replied';
      readonly mediation: ForwardedMediation;
      readonly status: number;
      /** Names of reply headers that were withheld, or kept because the binding says so. */
      readonly withheld?: readonly string[];
      readonly kept?: readonly string[];
    };

/** How a forwarded request was handled. `foreign`: a binding matched, but the client sent its own credential. */
export type ForwardedMediation = 'connector' | 'binding' | 'passthrough' | 'foreign';

/** An event as a writer passes it to the sink, which adds the id, the time and the sidecar. */
export type UnstampedEvent = Omit<AuditEvent, 'id' | 'time' | 'sidecar_id'>;

/** Longer paths are truncated: the audit log is not a store for what an agent puts into URLs. */
const MOST_PATH_CHARACTERS = 2048;

const REPLIED: Readonly<Record<ForwardedMediation, AuditEventType>> = {
  connector: 'connector.proxy.proxied',
  binding: 'sandbox.proxy.binding_injected',
  passthrough: 'sandbox.proxy.passthrough',
  foreign: 'sandbox.proxy.foreign_credential_kept',
};

/**
 * The audit event of one exchange (specification section 6), or null for a refusal that is only counted. It has method,
 * host, path and status. A bound request adds the pattern, scheme and emit mechanism, without a credential reference. An
 * operation adds its identity, its credential's reference and its typed audit fields.
 */
export function exchangeEvent(facts: ExchangeFacts, result: ExchangeResult): UnstampedEvent | null {
  const type = eventType(facts, result);
  if (type === null) return null;
  return {
    type,
    session_id: facts.sessionId,
    actor: facts.sessionId === null ? null : 'session',
    data: dataOf(facts, result),
  };
}

/** What a tunnel that is not intercepted has carried so far: null before its first byte. */
interface CarriedBytes {
  readonly sent: number;
  readonly received: number;
}

/** One of the two events of a tunnel that is not intercepted. Nothing in it was read, so there is no path and no status. */
export function tunnelledEvent(sessionId: string, host: string, carried: CarriedBytes | null): UnstampedEvent {
  const data: AuditEventData = {
    'svc.proxy.source': 'transparent_connect_tls',
    'svc.proxy.mediation': 'passthrough',
    'svc.proxy.method': 'CONNECT',
    'svc.proxy.upstream.host': host,
    'svc.proxy.reason': carried === null ? TUNNEL_OPENED : TUNNEL_CLOSED,
    ...(carried !== null && { 'svc.proxy.bytes.sent': carried.sent, 'svc.proxy.bytes.received': carried.received }),
  };
  return { type: 'sandbox.proxy.tunnelled', session_id: sessionId, actor: 'session', data };
}

/** Every refusal of an operation is a refusal of its connector. */
function eventType({ operation, connector }: ExchangeFacts, result: ExchangeResult): AuditEventType | null {
  if (result.kind === 'replied') return REPLIED[result.mediation];
  if (result.kind === 'answered') return REPLIED.connector;
  if (result.kind === 'captured') return REPLIED.passthrough;
  const type = result.kind === 'refused' ? refusalEvent(result.reason) : 'sandbox.proxy.rejected';
  return type === null || !(operation || connector) ? type : 'connector.proxy.rejected';
}

function refusalEvent(reason: RunRefusalReason): AuditEventType | null {
  return isRequestRefusal(reason) ? REFUSALS[reason].event : 'connector.proxy.rejected';
}

function isRequestRefusal(reason: RunRefusalReason): reason is RefusalReason {
  return Object.hasOwn(REFUSALS, reason);
}

/** Assigned member by member: one event is made per request, and spreading a dozen small objects costs as much as sending it. */
function dataOf(facts: ExchangeFacts, result: ExchangeResult): AuditEventData {
  const { source = 'transparent_connect_tls', stepId, host, method, path, binding, operation, connector, tool } = facts;
  const data: Writable<AuditEventData> = {
    'svc.proxy.source': source,
    'svc.proxy.mediation': mediationOf(result),
  };
  if (method !== null) data['svc.proxy.method'] = method.slice(0, 64);
  if (host !== null) data['svc.proxy.upstream.host'] = host;
  if (path !== null) data['svc.proxy.upstream.path'] = path.slice(0, MOST_PATH_CHARACTERS);
  if (result.kind === 'replied') addReply(data, facts, result);
  else data['svc.proxy.reason'] = result.reason;
  if (result.kind === 'captured') data['svc.proxy.upstream.status'] = result.status;
  if (facts.stray !== undefined && result.kind === 'replied') {
    data['svc.proxy.reason'] = PLACEHOLDER_UNBOUND;
    data['svc.proxy.binding.host'] = facts.stray.host;
  }
  if (binding !== null) {
    data['svc.proxy.binding.host'] = binding.host;
    data['svc.proxy.binding.scheme'] = binding.injection.scheme;
    data['svc.proxy.emit'] = binding.emit.mechanism;
  }
  if (facts.certificate !== undefined) {
    data['svc.proxy.client_certificate.ref'] = facts.certificate.reference;
    const { version } = facts.certificate;
    if (version !== null) data['svc.proxy.client_certificate.version'] = version;
  }
  if (operation) addOperation(data, operation, path, result);
  else if (connector) addConnector(data, connector);
  if (tool !== undefined) data['svc.connector.tool'] = tool;
  if (stepId !== undefined) data['svc.step.id'] = stepId;
  return data;
}

function addReply(
  data: Writable<AuditEventData>,
  { host, path, binding }: ExchangeFacts,
  { mediation, status, withheld = [], kept = [] }: Extract<ExchangeResult, { kind: 'replied' }>,
): void {
  data['svc.proxy.upstream.status'] = status;
  const isGiven = mediation === 'binding' && status >= 200 && status < 300;
  const issued = isGiven && binding !== null ? credentialsIssuedAt(host ?? '', path ?? '') : null;
  if (issued !== null) data['svc.proxy.reply.may_hold'] = issued;
  if (withheld.length > 0) data['svc.proxy.reply.withheld'] = withheld;
  if (kept.length > 0) data['svc.proxy.reply.kept'] = kept;
}

function addOperation(
  data: Writable<AuditEventData>,
  { match, givenInputs, approvalId }: OperationFacts,
  path: string | null,
  result: ExchangeResult,
): void {
  const { connector, operation } = match;
  const status = result.kind === 'replied' ? result.status : null;
  addConnector(data, connector);
  data['svc.connector.operation'] = operation.name;
  data['svc.connector.credential_ref'] = formatVaultReference(connector.credential.path);
  if (path !== null && operation.audit.length > 0) {
    data['svc.proxy.upstream.path'] = redactPath(operation, path).slice(0, MOST_PATH_CHARACTERS);
    data['svc.connector.fields'] = auditFields(operation, {
      path,
      givenInputs,
      status,
      document: match.document,
    });
  }
  if (approvalId !== null) data['svc.approval.id'] = approvalId;
}

function addConnector(data: Writable<AuditEventData>, { spec }: InstalledConnector): void {
  data['svc.connector.fqn'] = spec.fqn;
  data['svc.connector.version'] = spec.version;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function mediationOf(result: ExchangeResult): NonNullable<AuditEventData['svc.proxy.mediation']> {
  if (result.kind === 'answered') return 'connector';
  if (result.kind === 'captured') return 'passthrough';
  if (result.kind !== 'replied') return 'refused';
  return result.mediation === 'foreign' ? 'passthrough' : result.mediation;
}
