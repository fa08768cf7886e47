import { chooseBinding } from '../../shared/inject/choose.ts';
import { emitDecision } from '../../shared/inject/emit_decision.ts';
import { findStrayPlaceholder } from '../../shared/inject/stray_placeholder.ts';
import { needsBufferedBody } from '../../shared/inject/body_need.ts';
import { enforceContract } from '../../shared/enforce/contract.ts';
import { enforceLogin } from '../../shared/enforce/login.ts';
import type { ForwardedMediation } from '../../shared/audit/exchange_event.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { ok } from '../../shared/model/result.ts';
import type { ReplyHead, RequestHead } from '../../shared/net/http/http1_head.ts';
import { isRefusedIpLiteral } from '../../shared/net/ip_literal.ts';
import {
  type BindingResolution,
  isAnotherByBody,
  isOperation,
  type Policy,
  type ResolvableRequest,
  resolve,
} from '../../shared/resolve/resolve.ts';
import {
  bothInForce,
  checkCertificate,
  mayHaveCertificate,
  refusedCertificate,
  takeCertificate,
  withCertificateFacts,
} from './client_certificate.ts';
import { accountsFor, checkConnectorAccount } from './chosen_account.ts';
import { limitToHost, prepareCredentialedRequest, withoutProxyHeaders } from './prepare_request.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { exchangeAccount, mayAskForAccount } from './exchange_account.ts';
import { exchangeByBody } from './exchange_by_body.ts';
import { exchangeCapture, isTokenRequest } from './exchange_capture.ts';
import { exchangeLogin } from './exchange_login.ts';
import { exchangeOperation } from './exchange_operation.ts';
import type { Outgoing } from './outgoing.ts';
import { forward } from './forward.ts';
import { bindingInForce, connectorInForce, hostInForce, type InForce } from './in_force.ts';
import type { Incoming, StreamRequest } from './incoming.ts';
import { ambiguousTarget, checkAuthority, parseIncoming, parsePlainIncoming, parseStreamRequest } from './incoming.ts';
import { checkPlainHost } from './plain_host.ts';
import type { Facts, Outcome } from './outcome.ts';
import { abandon, auditUnavailable, refuse, replyWith } from './outcome.ts';
import { bodyText, NOT_BUFFERED, readBody } from './request_body.ts';
import { listWithheldHeaders, sanitiseHead } from './sanitise_head.ts';
import { forwardContext, PASSTHROUGH_LANE, sendCredentialed } from './send_credentialed.ts';

const NO_BINDINGS: readonly never[] = [];

/**
 * Decides one decrypted request and forwards it (specification section 1, Request resolution order): parse -> resolve ->
 * enforce -> body -> credential -> inject -> forward -> Outcome. It writes nothing to the client; its one caller answers and
 * records.
 */
export async function exchange(
  received: Buffer | StreamRequest,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const parsed = Buffer.isBuffer(received)
    ? (tunnel.plain === true ? parsePlainIncoming : parseIncoming)(received, tunnel.host, ports.limits.maxHeaders)
    : parseStreamRequest(received, tunnel.host, ports.limits);
  if (!parsed.ok) return refuse(factsOfUnread(tunnel), parsed.error);
  const incoming = parsed.value;
  const facts = factsOf(incoming, tunnel.host);

  if (ports.audit.exhausted) return refuse(facts, auditUnavailable(), incoming);
  const policy = ports.policy.current();
  if (!policy.ok) return refuse(facts, policy.error, incoming);
  if (tunnel.plain === true) {
    const bare = checkPlainHost(policy.value, tunnel);
    if (!bare.ok) return refuse(facts, bare.error, incoming);
  }
  const { method, fields } = incoming.head;
  const { path, query } = incoming.target;
  if (tunnel.login !== null && isTokenRequest(tunnel.login, facts)) {
    return exchangeCapture(incoming, tunnel.login, policy.value, facts, tunnel, ports);
  }
  if (tunnel.login !== null && mayAskForAccount(tunnel.login, incoming, facts)) {
    return exchangeAccount(incoming, tunnel.login, facts, tunnel, ports);
  }
  const asked = { method, host: tunnel.host, path, query, fields };
  const resolution = resolve(policy.value, asked);
  if (resolution.kind === 'ambiguous_target') return refuse(facts, ambiguousTarget(tunnel.host), incoming);
  const certified = checkCertificate(policy.value, incoming.head, isOperation(resolution), tunnel);
  if (!certified.ok) return refuse({ ...facts, ...refusedCertificate(tunnel, ports) }, certified.error, incoming);
  if (resolution.kind === 'passthrough') return exchangeUnbound(incoming, policy.value, facts, tunnel, ports);
  const inForceOf = (connector: InstalledConnector): InForce =>
    connectorInForce(ports.policy, policy.value, tunnel.host, connector);
  const checkAccount = (connector: InstalledConnector): ReturnType<typeof checkConnectorAccount> => {
    const request = prepareCredentialedRequest(incoming, tunnel.host);
    return checkConnectorAccount({ choice: tunnel.choice, host: tunnel.host, request }, policy.value, connector);
  };
  const isAnother = (body: () => string): boolean => isAnotherByBody(policy.value, asked, body);
  if (resolution.kind === 'connector') {
    const { login } = resolution.match.connector.spec.credential;
    const asToken = { match: resolution.match, policy: policy.value };
    if (login !== undefined) return exchangeLogin(incoming, { ...asToken, login }, facts, tunnel, ports);
    const account = checkAccount(resolution.match.connector);
    if (!account.ok) return refuse(facts, account.error, incoming);
    const inForce = inForceOf(resolution.match.connector);
    return exchangeOperation(incoming, { match: resolution.match, inForce, isAnother }, facts, tunnel, ports);
  }
  if (resolution.kind !== 'binding') {
    return exchangeByBody(incoming, { ...resolution, inForceOf, checkAccount, isAnother }, facts, tunnel, ports);
  }

  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return refuse(facts, authority.error, incoming);
  return exchangeBound(incoming, { ...resolution, policy: policy.value, request: asked }, facts, tunnel, ports);
}

/** A host without a credential. A session that is limited to some hosts, or has chosen an account, may be refused it. */
async function exchangeUnbound(
  incoming: Incoming,
  policy: Policy,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  // A server of many hosts answers for the host that the request names, not for the one that was dialled.
  const isPlain = tunnel.plain === true;
  const named = tunnel.limited ? checkAuthority(incoming, tunnel.host, tunnel.sni, isPlain) : ok(undefined);
  if (!named.ok) return refuse(facts, named.error, incoming);
  const { choice, host } = tunnel;
  const chosen = accountsFor({ choice, host, request: null }, NO_BINDINGS);
  if (!chosen.ok) return refuse(facts, chosen.error, incoming);
  const stray = findStrayPlaceholder(policy.placeholders, incoming.head);
  return exchangePassthrough(incoming, stray === null ? facts : { ...facts, stray }, tunnel, ports);
}

/** The policy that a resolution was made with. */
interface Decided {
  readonly policy: Policy;
  readonly request: ResolvableRequest;
}

/** The binding path: contract first, then body, and the credential last. */
async function exchangeBound(
  incoming: Incoming,
  { bindings, besideApprovals, policy, request: asked }: BindingResolution & Decided,
  unbound: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const request = prepareCredentialedRequest(incoming, tunnel.host);
  const accounts = accountsFor({ choice: tunnel.choice, host: tunnel.host, request }, bindings);
  if (!accounts.ok) return refuse(unbound, accounts.error, incoming);
  const choice = chooseBinding(accounts.value.bindings, request, accounts.value.byDefault);
  const binding = choice?.binding ?? accounts.value.bindings[0];
  if (binding === undefined) throw new Error('a resolution to a binding names at least one');
  const facts: Facts = { host: unbound.host, method: unbound.method, path: unbound.path, binding };

  const contract = enforceContract(binding, {
    host: tunnel.host,
    method: request.method,
    fields: incoming.head.fields,
    besideApprovals,
  });
  if (!contract.ok) return refuse(facts, contract.error, incoming);
  const decision = choice === null ? 'keep_foreign' : emitDecision(binding, choice.presented);
  if (decision === 'forward') return forwardAsIs(incoming, 'passthrough', unbound, tunnel, ports);
  if (decision === 'keep_foreign') return forwardAsIs(incoming, 'foreign', facts, tunnel, ports);
  const login = enforceLogin(binding, policy.installed, { host: tunnel.host, path: asked.path });
  if (!login.ok) return refuse(facts, login.error, incoming);
  if (!ports.audit.accepting) return refuse(facts, auditUnavailable(), incoming);

  const inFull = incoming.framing.kind !== 'none' && needsBufferedBody(binding, request);
  const body = inFull ? await readBody(incoming, tunnel, ports) : NOT_BUFFERED;
  if (!body.ok) return tunnel.client.closed ? abandon(facts) : refuse(facts, body.error);
  try {
    if (isAnotherByBody(policy, asked, () => bodyText(body.value))) {
      return refuse(facts, ambiguousTarget(tunnel.host), incoming, body.value.buffered !== null);
    }
    const inForce = bindingInForce(ports.policy, policy, tunnel.host, binding);
    const admitted = { incoming, request, binding, inForce, body: body.value, facts, mediation: 'binding' } as const;
    return await sendCredentialed(admitted, tunnel, ports);
  } finally {
    body.value.buffered?.release();
  }
}

/** The passthrough path: refuses private IP literals, else forwards the request unchanged and looks up no credential. */
function exchangePassthrough(
  incoming: Incoming,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> | Outcome {
  if (isRefusedIpLiteral(tunnel.host)) {
    const message = `${tunnel.host} is an address in a private range; use a host name, or bind the host`;
    return refuse(facts, refusal('passthrough_target_not_allowed', message), incoming);
  }
  return forwardAsIs(incoming, 'passthrough', facts, tunnel, ports);
}

async function forwardAsIs(
  incoming: Incoming,
  mediation: ForwardedMediation,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  if (mayHaveCertificate(tunnel, ports)) return forwardCertified(incoming, mediation, facts, tunnel, ports);
  const reply = await forward(asIs(incoming, tunnel), {
    ...forwardContext(incoming, tunnel, ports, null),
    inForce: null,
  });
  if (reply.ok) return replyWith(incoming, facts, mediation, reply.value, null);
  return tunnel.client.closed ? abandon(facts) : refuse(facts, reply.error, incoming);
}

/**
 * Forwards a request whose only credential may be the client certificate. It names the host, because a server may answer for
 * several, and its reply gives the client nothing that would authenticate without the certificate.
 */
async function forwardCertified(
  incoming: Incoming,
  mediation: ForwardedMediation,
  unsent: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const policy = ports.policy.current();
  if (!policy.ok) return refuse(unsent, policy.error, incoming);
  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  const taken = authority.ok
    ? await takeCertificate({ head: incoming.head, isOperation: false }, tunnel, ports)
    : authority;
  if (!taken.ok) return refuse({ ...unsent, ...refusedCertificate(tunnel, ports) }, taken.error, incoming);
  const certificate = taken.value;
  const overLimit = certificate === null ? null : ports.counts.take(null, tunnel.sessionId);
  if (overLimit !== null) return refuse(unsent, overLimit, incoming);
  const inForce = bothInForce(hostInForce(ports.policy, policy.value, tunnel.host), certificate);
  const facts = withCertificateFacts(unsent, certificate);
  const context = forwardContext(incoming, tunnel, ports, null);
  const onInterim = (raw: Buffer, head: ReplyHead): Promise<void> | void => {
    const shown = sanitiseHead({ head, raw }, false);
    return context.onInterim?.(shown.raw, shown.head);
  };
  const outgoing = { ...asIs(incoming, { host: tunnel.host, limited: true }), certificate };
  const meter = certificate === null ? null : ports.counts.meter(null, tunnel.sessionId);
  const reply = await forward(outgoing, { ...context, onInterim, inForce, meter });
  if (!reply.ok) return tunnel.client.closed ? abandon(facts) : refuse(facts, reply.error, incoming);
  const shown = { ...reply.value, ...sanitiseHead(reply.value, false) };
  const withheldHeaders = listWithheldHeaders(reply.value.head.fields, false);
  return { ...replyWith(incoming, facts, mediation, shown, null), withheldHeaders, inForce, meter };
}

/** The request without a credential and without the headers for the proxy. */
function asIs(incoming: Incoming, { host, limited: isLimited }: Pick<ExchangeTunnel, 'host' | 'limited'>): Outgoing {
  const limited = isLimited ? limitToHost(incoming, host) : null;
  const head = limited ?? incoming.head;
  const rewritten = withoutProxyHeaders(head) ?? limited;
  return {
    head: rewritten ?? incoming.head,
    raw: rewritten === null ? incoming.raw : null,
    body: { kind: 'stream', framing: incoming.framing, transform: null },
    upgrade: acceptedUpgrade(head, isLimited),
    lane: PASSTHROUGH_LANE,
    credential: null,
  };
}

function acceptedUpgrade(head: RequestHead, limited: boolean): Outgoing['upgrade'] {
  if (!head.fields.some((field) => field.name === 'upgrade')) return 'none';
  return limited ? 'websocket' : 'any';
}

function factsOf(incoming: Incoming, host: string): Facts {
  return { host, method: incoming.head.method, path: incoming.target.path, binding: null };
}

function factsOfUnread({ host }: ExchangeTunnel): Facts {
  return { host, method: null, path: null, binding: null };
}
