import type { ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { recogniseGraphql } from '../../shared/connect/graphql_operation.ts';
import { enforceGraphqlRequest } from '../../shared/enforce/graphql_request.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { sendOperation } from './exchange_operation.ts';
import type { InForce } from './in_force.ts';
import type { Incoming } from './incoming.ts';
import { checkAuthority } from './incoming.ts';
import type { Facts, Outcome } from './outcome.ts';
import { abandon, auditUnavailable, refuse } from './outcome.ts';
import { NOT_BUFFERED, readBody } from './request_body.ts';

/** The operations that a request may be, and a check that their connector is still in force. */
interface Candidates {
  readonly candidates: readonly ConnectorOperation[];
  readonly inForceOf: (connector: InstalledConnector) => InForce;
  /** Refuses a connector whose credential is another account than the session chose. */
  readonly checkAccount: (connector: InstalledConnector) => Result<void, Refusal>;
}

/**
 * The connector path if the body decides which operation a request is (docs/decisions/0043): authority -> enforce -> body ->
 * recognise -> account -> approval -> credential -> in force -> inject -> forward. A request that cannot be recognised is refused, and
 * never falls through to a binding.
 */
export async function exchangeGraphql(
  incoming: Incoming,
  { candidates, inForceOf, checkAccount }: Candidates,
  unmatched: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const attempted = withConnector(unmatched, candidates);
  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return refuse(attempted, authority.error, incoming);
  const { method, fields } = incoming.head;
  const { query } = incoming.target;
  const hasBody = incoming.framing.kind !== 'none';
  const contract = enforceGraphqlRequest({ method, query, fields, hasBody });
  if (!contract.ok) return refuse(attempted, contract.error, incoming);
  if (!ports.audit.accepting) return refuse(attempted, auditUnavailable(), incoming);

  const body = hasBody ? await readBody(incoming, tunnel, ports, 'graphql') : NOT_BUFFERED;
  if (!body.ok) return tunnel.client.closed ? abandon(attempted) : refuse(attempted, body.error);
  try {
    const { buffered } = body.value;
    const match = recogniseGraphql(candidates, { method, query }, buffered?.chunks ?? []);
    if (!match.ok) return refuse(attempted, match.error, incoming, buffered !== null);
    const account = checkAccount(match.value.connector);
    if (!account.ok) return refuse(attempted, account.error, incoming, buffered !== null);
    const inForce = inForceOf(match.value.connector);
    return await sendOperation({ incoming, match: match.value, inForce, body: body.value }, unmatched, tunnel, ports);
  } finally {
    body.value.buffered?.release();
  }
}

/** A refused request is recorded with the connector of its endpoint, if there is one. */
function withConnector(facts: Facts, candidates: readonly ConnectorOperation[]): Facts {
  const [connector, ...others] = new Set(candidates.map((candidate) => candidate.connector));
  return connector === undefined || others.length > 0 ? facts : { ...facts, connector };
}
