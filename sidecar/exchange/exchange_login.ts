import type { ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { decideTokenRequest, placeholderReply } from '../../shared/connect/token_request.ts';
import { enforceOperation } from '../../shared/enforce/operation.ts';
import { ANSWERED_LOCALLY } from '../../shared/model/audit_event.ts';
import type { ProgramLogin } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { forward } from './forward.ts';
import type { Outgoing } from './outgoing.ts';
import { checkAuthority, type Incoming } from './incoming.ts';
import { abandon, auditUnavailable, type Facts, type Outcome, refuse, replyLocally, replyWith } from './outcome.ts';
import { reframe, withoutProxyHeaders } from './prepare_request.ts';
import { bodyText, readBody, type RequestBody } from './request_body.ts';
import { forwardContext, PASSTHROUGH_LANE } from './send_credentialed.ts';

/** A request for tokens, and the policy that it was resolved with. */
interface Matched {
  readonly match: ConnectorOperation;
  readonly login: ProgramLogin;
  readonly policy: Policy;
}

/**
 * A request at the token URL of a program's login. The control plane alone refreshes its tokens, so a refresh with a placeholder
 * is answered here, and no other request with a placeholder is sent on. A request without one is the program's own matter: it is
 * forwarded unchanged. No credential is looked up.
 */
export async function exchangeLogin(
  incoming: Incoming,
  { match, login, policy }: Matched,
  { host, method, path }: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const operation = { match, givenInputs: new Set<string>(), approvalId: null };
  const facts: Facts = { host, method, path, binding: null, operation };
  const enforce = () => enforceOperation(match.operation, incoming.head.fields, incoming.target.query);
  const body = await readOwnRequest(incoming, facts, tunnel, ports, enforce);
  if (!body.ok) return body.error;
  try {
    const { path: own, owner } = match.connector.credential;
    const placeholders = loginPlaceholders(policy, (used) => used.path === own && used.owner === owner);
    const request = { placeholders, clientId: login.clientId };
    return await answerTokenRequest(incoming, body.value, request, facts, tunnel, ports);
  } finally {
    body.value.buffered?.release();
  }
}

/**
 * Reads the whole body of a request that the sidecar treats itself: what precedes that is the same for each. The error is the
 * outcome. `enforce` checks what else the request has to be.
 */
export async function readOwnRequest(
  incoming: Incoming,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
  enforce: () => Result<unknown, Refusal> = () => ok(undefined),
): Promise<Result<RequestBody, Outcome>> {
  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return err(refuse(facts, authority.error, incoming));
  const contract = enforce();
  if (!contract.ok) return err(refuse(facts, contract.error, incoming));
  if (!ports.audit.accepting) return err(refuse(facts, auditUnavailable(), incoming));
  const body = await readBody(incoming, tunnel, ports);
  if (body.ok) return body;
  return err(tunnel.client.closed ? abandon(facts) : refuse(facts, body.error));
}

/** The known placeholders of a login, and its client. */
interface KnownPlaceholders {
  readonly placeholders: readonly string[];
  readonly clientId: string;
  /** How long the placeholders seem to be valid; by default ten years. */
  readonly seconds?: number;
}

/**
 * Answers a refresh with a placeholder, refuses any other request with one, and forwards what is the program's own matter, by
 * default unchanged.
 */
export async function answerTokenRequest(
  incoming: Incoming,
  body: RequestBody,
  { placeholders, clientId, seconds }: KnownPlaceholders,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
  forwardRest = forwardOwn,
): Promise<Outcome> {
  const headers = incoming.head.fields.map(({ value }) => value);
  const decided = decideTokenRequest(placeholders, clientId, { body: bodyText(body), headers });
  if (decided.kind === 'answer') {
    const reply = placeholderReply(decided.placeholder, decided.scope, seconds);
    return replyLocally(incoming, facts, reply, { kind: 'answered', reason: ANSWERED_LOCALLY });
  }
  if (decided.kind === 'refuse') return refuse(facts, placeholderRefusal(facts.host), incoming, true);
  const { host, method, path } = facts;
  return forwardRest(incoming, body, { host, method, path, binding: null }, tunnel, ports);
}

/** The placeholders that stand for the access tokens of these credentials. */
export function loginPlaceholders(
  { placeholders }: Policy,
  isOfLogin: (credential: HostBinding['credential']) => boolean,
): readonly string[] {
  return placeholders.flatMap(({ emit, credential }) =>
    emit.mechanism === 'sentinel-swap' && isOfLogin(credential) ? [emit.sentinel] : [],
  );
}

function placeholderRefusal(host: string) {
  return refusal(
    'placeholder_not_accepted',
    `the request to ${host} holds a placeholder of svc and is no refresh of its login: it was not sent`,
  );
}

/** The request without the headers for the proxy, and with the body that was read. */
export function outgoingOwn(incoming: Incoming, { buffered }: RequestBody): Outgoing {
  const head = withoutProxyHeaders(incoming.head) ?? incoming.head;
  const fields = buffered === null ? head.fields : reframe(head.fields, buffered.bytes);
  return {
    head: { ...head, fields },
    raw: null,
    body: { kind: 'bytes', chunks: buffered?.chunks ?? [] },
    upgrade: 'none',
    lane: PASSTHROUGH_LANE,
    credential: null,
  };
}

/** Forwards a request unchanged, and its reply. */
export async function forwardOwn(
  incoming: Incoming,
  body: RequestBody,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const reply = await forward(outgoingOwn(incoming, body), {
    ...forwardContext(incoming, tunnel, ports, null),
    inForce: null,
  });
  if (reply.ok) return replyWith(incoming, facts, 'passthrough', reply.value, null);
  return tunnel.client.closed ? abandon(facts) : refuse(facts, reply.error, incoming, true);
}
