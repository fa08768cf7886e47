import type { ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { decideTokenRequest, placeholderReply } from '../../shared/connect/token_request.ts';
import { enforceOperation } from '../../shared/enforce/operation.ts';
import type { InstalledConnector, ProgramLogin } from '../../shared/model/connector.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { formatRequestHead } from '../../shared/net/http1_head.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { forward, type Outgoing } from './forward.ts';
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
  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return refuse(facts, authority.error, incoming);
  const contract = enforceOperation(match.operation, incoming.head.fields, incoming.target.query);
  if (!contract.ok) return refuse(facts, contract.error, incoming);
  if (!ports.audit.accepting) return refuse(facts, auditUnavailable(), incoming);
  const body = await readBody(incoming, tunnel, ports);
  if (!body.ok) return tunnel.client.closed ? abandon(facts) : refuse(facts, body.error);
  try {
    const headers = incoming.head.fields.map(({ value }) => value);
    const request = { body: bodyText(body.value), headers };
    const decided = decideTokenRequest(placeholdersOf(policy, match.connector), login.clientId, request);
    if (decided.kind === 'answer') {
      return replyLocally(incoming, facts, placeholderReply(decided.placeholder, decided.scope));
    }
    if (decided.kind === 'refuse') return refuse(facts, placeholderRefusal(host), incoming, true);
    return await forwardOwn(incoming, body.value, { host, method, path, binding: null }, tunnel, ports);
  } finally {
    body.value.buffered?.release();
  }
}

/** The placeholders that stand for this login's access token. */
function placeholdersOf(policy: Policy, { credential }: InstalledConnector): readonly string[] {
  return policy.placeholders.flatMap(({ emit, credential: used }) =>
    emit.mechanism === 'sentinel-swap' && used.path === credential.path && used.owner === credential.owner
      ? [emit.sentinel]
      : [],
  );
}

function placeholderRefusal(host: string) {
  return refusal(
    'placeholder_not_accepted',
    `the request to ${host} holds a placeholder of svc and is no refresh of its login: it was not sent`,
  );
}

async function forwardOwn(
  incoming: Incoming,
  { buffered }: RequestBody,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const head = withoutProxyHeaders(incoming.head) ?? incoming.head;
  const fields = buffered === null ? head.fields : reframe(head.fields, buffered.bytes);
  const outgoing: Outgoing = {
    head: formatRequestHead({ ...head, fields }),
    method: head.method,
    body: { kind: 'bytes', chunks: buffered?.chunks ?? [] },
    upgrade: 'none',
    lane: PASSTHROUGH_LANE,
  };
  const reply = await forward(outgoing, { ...forwardContext(incoming, tunnel, ports, null), inForce: null });
  if (reply.ok) return replyWith(incoming, facts, 'passthrough', reply.value, null);
  return tunnel.client.closed ? abandon(facts) : refuse(facts, reply.error, incoming, true);
}
