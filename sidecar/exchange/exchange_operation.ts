import type { OperationFacts } from '../../shared/audit/exchange_event.ts';
import type { ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { enforceOperation } from '../../shared/enforce/operation.ts';
import type { OutgoingRequest } from '../../shared/inject/outgoing_request.ts';
import type { Result } from '../../shared/model/result.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import type { NotApproved } from '../ports.ts';
import { askApproval } from './ask_approval.ts';
import { connectorBinding } from './connector_binding.ts';
import { prepareCredentialedRequest } from './prepare_request.ts';
import { type ExchangePorts, type ExchangeTunnel, credentialsFor } from './exchange_ports.ts';
import { listGivenInputs, readsBody } from './given_inputs.ts';
import type { InForce } from './in_force.ts';
import type { Incoming } from './incoming.ts';
import { ambiguousTarget, checkAuthority } from './incoming.ts';
import type { Facts, Outcome } from './outcome.ts';
import { abandon, auditUnavailable, refuse } from './outcome.ts';
import type { RequestBody } from './request_body.ts';
import { bodyText, NOT_BUFFERED, readBody } from './request_body.ts';
import { sendCredentialed } from './send_credentialed.ts';

/**
 * The connector path (specification section 1): authority -> enforce -> body -> approval -> credential -> inject -> forward.
 * The client's own request is forwarded whole, with the connector's credential in place of its Authorization.
 */
export async function exchangeOperation(
  incoming: Incoming,
  { match, inForce, isAnother }: Matched & { readonly isAnother: (body: () => string) => boolean },
  unmatched: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const attempted = operationFacts(unmatched, { match, incoming, body: null, approvalId: null });
  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return refuse(attempted, authority.error, incoming);
  const contract = enforceOperation(match.operation, incoming.head.fields, incoming.target.query);
  if (!contract.ok) return refuse(attempted, contract.error, incoming);
  if (!ports.audit.accepting) return refuse(attempted, auditUnavailable(), incoming);

  const body =
    incoming.framing.kind === 'none'
      ? NOT_BUFFERED
      : await readBody(incoming, tunnel, ports, readsBody(match.operation) ? 'audited' : 'credentialed');
  if (!body.ok) return tunnel.client.closed ? abandon(attempted) : refuse(attempted, body.error);
  try {
    if (isAnother(() => bodyText(body.value))) {
      return refuse(attempted, ambiguousTarget(tunnel.host), incoming, body.value.buffered !== null);
    }
    return await sendOperation({ incoming, match, inForce, body: body.value }, unmatched, tunnel, ports);
  } finally {
    body.value.buffered?.release();
  }
}

/** The operation of a request, and a check that it is still in force. */
interface Matched {
  readonly match: ConnectorOperation;
  readonly inForce: InForce;
}

/** A request to an operation, with its body. */
interface Asked extends Matched {
  readonly incoming: Incoming;
  readonly body: RequestBody;
}

/** approval -> credential -> in force -> inject -> forward. */
export async function sendOperation(
  { incoming, match, inForce, body }: Asked,
  unmatched: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const request = prepareCredentialedRequest(incoming, tunnel.host);
  const overLimit = ports.counts.refuse(connectorBinding(match.connector, tunnel.host), tunnel.sessionId);
  if (overLimit !== null) {
    const facts = operationFacts(unmatched, { match, incoming, body, approvalId: null });
    return refuse(facts, overLimit, incoming, body.buffered !== null);
  }
  const approval = await approve({ match, body }, request, tunnel, ports);
  const approvalId = approval.ok ? approval.value : approval.error.approvalId;
  const facts = operationFacts(unmatched, { match, incoming, body, approvalId });
  if (tunnel.client.closed) return abandon(facts);
  if (!approval.ok) return refuse(facts, approval.error.refusal, incoming, body.buffered !== null);
  const binding = connectorBinding(match.connector, tunnel.host);
  const admitted = { incoming, request, binding, inForce, body, facts, mediation: 'connector' } as const;
  return sendCredentialed(admitted, tunnel, ports);
}

/** Holds the request until a person decides or the client closes its sending side. */
async function approve(
  { match, body }: Pick<Asked, 'match' | 'body'>,
  { method, host, target, fields }: OutgoingRequest,
  { client, sessionId, credentialsId }: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Result<string | null, NotApproved>> {
  const gone = new AbortController();
  const stopWatching = client.onClosed(() => gone.abort());
  client.onFinished(() => gone.abort());
  try {
    const contentType = fieldValues(fields, 'content-type').join(', ');
    const asked = { method, host, target, contentType, body: body.buffered?.chunks ?? [], sessionId };
    const { approvals, materials } = ports;
    const credentials = credentialsFor(ports, credentialsId);
    return await askApproval(match, asked, { approvals, credentials, materials }, gone.signal);
  } finally {
    client.onFinished(null);
    stopWatching();
  }
}

interface Known {
  readonly match: ConnectorOperation;
  readonly incoming: Incoming;
  /** Null if the body is not read. */
  readonly body: RequestBody | null;
  readonly approvalId: string | null;
}

function operationFacts(
  { host, method, path }: Facts,
  { match, incoming, body, approvalId }: Known,
): Facts & { readonly operation: OperationFacts } {
  const given = listGivenInputs(match.operation, incoming.target.query, body?.buffered?.chunks ?? []);
  return { host, method, path, binding: null, operation: { match, givenInputs: given, approvalId } };
}
