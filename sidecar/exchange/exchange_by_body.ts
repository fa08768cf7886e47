import type { BodyKind, ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { recogniseGraphql } from '../../shared/connect/graphql_operation.ts';
import { listRuledPointers, recogniseJson } from '../../shared/connect/json_operation.ts';
import { enforceGraphqlRequest } from '../../shared/enforce/graphql_request.ts';
import type { InspectedRequest } from '../../shared/enforce/inspected_head.ts';
import { enforceJsonRequest } from '../../shared/enforce/json_request.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import type { ByBody } from '../../shared/resolve/resolve.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { sendOperation } from './exchange_operation.ts';
import type { InForce } from './in_force.ts';
import type { Incoming } from './incoming.ts';
import { ambiguousTarget, checkAuthority } from './incoming.ts';
import type { Facts, Outcome } from './outcome.ts';
import { abandon, auditUnavailable, refuse } from './outcome.ts';
import { bodyText, NOT_BUFFERED, readBody } from './request_body.ts';

type Bytes = readonly Uint8Array[];

/** How a request is read whose body decides which operation it is. */
interface Reader {
  /** Before the body is read. */
  readonly enforce: (request: InspectedRequest, candidates: readonly ConnectorOperation[]) => Result<void, Refusal>;
  readonly recognise: (
    candidates: readonly ConnectorOperation[],
    request: InspectedRequest,
    body: Bytes,
  ) => Result<ConnectorOperation, Refusal>;
}

const READERS: { readonly [K in BodyKind]: Reader } = {
  graphql: { enforce: enforceGraphqlRequest, recognise: recogniseGraphql },
  json: {
    enforce: (request, candidates) => enforceJsonRequest(request, listRuledPointers(candidates)),
    recognise: (candidates, _request, body) => recogniseJson(candidates, body),
  },
};

/** The operations that a request may be, and checks of the one that it is. */
interface Candidates extends ByBody {
  readonly inForceOf: (connector: InstalledConnector) => InForce;
  /** Refuses a connector whose credential is another account than the session chose. */
  readonly checkAccount: (connector: InstalledConnector) => Result<void, Refusal>;
  /** Whether a server could read the body, as latin1, as that of another method's request. */
  readonly isAnother: (body: () => string) => boolean;
}

/**
 * The connector path if the body decides which operation a request is (docs/decisions/0043, 0101): authority -> enforce ->
 * body -> recognise -> account -> approval -> credential -> in force -> inject -> forward. A request that cannot be recognised
 * is refused, and never falls through to a binding.
 */
export async function exchangeByBody(
  incoming: Incoming,
  { kind, candidates, inForceOf, checkAccount, isAnother }: Candidates,
  unmatched: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const attempted = withConnector(unmatched, candidates);
  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return refuse(attempted, authority.error, incoming);
  const { method, fields } = incoming.head;
  const { framing } = incoming;
  const hasBody = framing.kind !== 'none' && !(framing.kind === 'length' && framing.length === 0);
  const request = { method, query: incoming.target.query, fields, hasBody };
  const contract = READERS[kind].enforce(request, candidates);
  if (!contract.ok) return refuse(attempted, contract.error, incoming);
  if (!ports.audit.accepting) return refuse(attempted, auditUnavailable(), incoming);

  const body = hasBody ? await readBody(incoming, tunnel, ports, kind) : NOT_BUFFERED;
  if (!body.ok) return tunnel.client.closed ? abandon(attempted) : refuse(attempted, body.error);
  const isRead = body.value.buffered !== null;
  try {
    if (isAnother(() => bodyText(body.value))) return refuse(attempted, ambiguousTarget(tunnel.host), incoming, isRead);
    const match = READERS[kind].recognise(candidates, request, body.value.buffered?.chunks ?? []);
    if (!match.ok) return refuse(attempted, match.error, incoming, isRead);
    const account = checkAccount(match.value.connector);
    if (!account.ok) return refuse(attempted, account.error, incoming, isRead);
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
