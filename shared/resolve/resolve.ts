import {
  compileConnectors,
  evadesConnector,
  isGraphqlEndpoint,
  matchOperation,
  mayNeedApproval,
  listReadings,
  type ConnectorIndex,
  type ConnectorOperation,
} from '../connect/connector_index.ts';
import { OPERATION_METHODS, type InstalledConnector, type Operation } from '../model/connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { isMethodOverrideHeader, mayNameMethod, methodOverridesOfQuery } from '../net/method_override.ts';
import { isPathOverrideHeader } from '../net/path_override.ts';

/** The connectors and host bindings in force, compiled for lookup by host. */
export interface Policy {
  readonly connectors: ConnectorIndex;
  /** The connectors in force: one of each name. */
  readonly installed: readonly InstalledConnector[];
  /** The connector of a name; the personal one where the enterprise has it too. */
  connectorNamed(fqn: string): InstalledConnector | undefined;
  /**
   * Every binding of the pattern that wins for a canonical host (lower-case ASCII): an exact host beats a wildcard, a
   * longer suffix a shorter one. Empty when no pattern matches.
   */
  bindingsFor(host: string): readonly HostBinding[];
}

/** What of a request decides which path it takes. */
export interface ResolvableRequest {
  readonly method: string;
  /** Canonical (lower-case ASCII). */
  readonly host: string;
  /** As it was sent, without the query. */
  readonly path: string;
  /** Without the `?`; null or absent when there is none. It is looked at for a method only. */
  readonly query?: string | null;
  /** Only those that override method or path are looked at, and only where the host has connectors. Names are in lower case. */
  readonly fields?: readonly { readonly name: string; readonly value: string }[];
}

/**
 * The path a request takes (specification section 1, Request resolution order). `ambiguous_target`: a server could take it
 * for an operation that it is not as it stands, so that no path is right (design section 5, invariant 8). `graphql`: the
 * path is a GraphQL endpoint, and the document decides which of the candidates the request is; none of them, and it is
 * refused.
 */
export type Resolution =
  | { readonly kind: 'connector'; readonly match: ConnectorOperation }
  | { readonly kind: 'graphql'; readonly candidates: readonly ConnectorOperation[] }
  | { readonly kind: 'ambiguous_target' }
  | BindingResolution
  | { readonly kind: 'passthrough' };

/** Of several bindings, what the request presents chooses one. */
export interface BindingResolution {
  readonly kind: 'binding';
  readonly bindings: readonly HostBinding[];
  /** The host has operations that need an approval: a binding without an effect only reads there. */
  readonly besideApprovals: boolean;
}

const KNOWN_METHODS: ReadonlySet<string> = new Set([...OPERATION_METHODS, 'OPTIONS']);
const AMBIGUOUS_TARGET: Resolution = { kind: 'ambiguous_target' };
const NO_GRAPHQL_OPERATION: Resolution = { kind: 'graphql', candidates: [] };
const PASSTHROUGH: Resolution = { kind: 'passthrough' };
const NONE: readonly HostBinding[] = [];
const NO_FIELDS: NonNullable<ResolvableRequest['fields']> = [];

/**
 * Compiles bindings (with canonical hosts) for lookup: one map is read for the exact host, then one for each of its
 * labels. For one pattern the personal bindings replace the enterprise's; their order is kept.
 */
export function compilePolicy(
  bindings: readonly HostBinding[],
  connectors: readonly InstalledConnector[] = [],
): Policy {
  const exact = new Map<string, HostBinding[]>();
  const bySuffix = new Map<string, HostBinding[]>();
  for (const binding of bindings) {
    if (binding.host.startsWith('*')) add(bySuffix, binding.host.slice(1), binding);
    else add(exact, binding.host, binding);
  }
  const byName = new Map<string, InstalledConnector>();
  for (const connector of connectors) {
    if (connector.owner === 'personal' || !byName.has(connector.spec.fqn)) byName.set(connector.spec.fqn, connector);
  }
  const maxLength = Array.from(bySuffix.keys()).reduce((max, suffix) => Math.max(max, suffix.length), 0);
  return {
    connectors: compileConnectors(connectors),
    installed: [...byName.values()],
    connectorNamed: (fqn) => byName.get(fqn),
    bindingsFor: (host) => exact.get(host) ?? longestSuffix(bySuffix, maxLength, host),
  };
}

/**
 * Whether somebody named this very host: a connector's spec, the binding in force for it, or that one's allowed hosts. A
 * wildcard alone names no host, for whoever runs the zone decides where its names lead.
 */
export function namesHost(policy: Policy, host: string): boolean {
  if (policy.connectors.hosts.has(host)) return true;
  return policy.bindingsFor(host).some((binding) => binding.host === host || binding.allowedHosts.includes(host));
}

/** Decides which path a request takes; the bindings are those of the pattern that wins for its host. */
export function resolve(policy: Policy, request: ResolvableRequest): Resolution {
  const byConnector = policy.connectors.hosts.has(request.host) ? resolveOperation(policy.connectors, request) : null;
  if (byConnector !== null) return byConnector;
  const bindings = policy.bindingsFor(request.host);
  if (bindings.length === 0) return PASSTHROUGH;
  return { kind: 'binding', bindings, besideApprovals: policy.connectors.approvalHosts.has(request.host) };
}

/**
 * Whether a server could take a request for another operation by a `_method` in its body, as frameworks do. `body` gives it as
 * latin1, and is called only where there is such an operation.
 */
export function isAnotherByBody({ connectors }: Policy, request: ResolvableRequest, body: () => string): boolean {
  if (!connectors.hosts.has(request.host) || request.method.toUpperCase() !== 'POST') return false;
  const hasOthers = OPERATION_METHODS.some(
    (method) =>
      method !== 'POST' &&
      (operationsAs(connectors, request, method).length > 0 || mayNeedApproval(connectors, { ...request, method })),
  );
  return hasOthers && mayNameMethod(request.method, body());
}

/** Null when the request is no operation, also because it would be several: it goes on to the bindings then. */
function resolveOperation(connectors: ConnectorIndex, request: ResolvableRequest): Resolution | null {
  if (evadesConnector(connectors, request)) return AMBIGUOUS_TARGET;
  if (request.fields?.some(({ name }) => isPathOverrideHeader(name)) === true) return AMBIGUOUS_TARGET;
  const found = matchOperation(connectors, request);
  if (found.kind === 'operation') return { kind: 'connector', match: found.match };
  if (found.kind === 'graphql') return found;
  if (isGraphqlEndpoint(connectors, request)) return NO_GRAPHQL_OPERATION;
  const methods = possibleMethods(request);
  const isAnother = methods.some(
    (method) => method !== request.method && operationsAs(connectors, request, method).length > 0,
  );
  const isGuarded = listGuardingMethods(request, methods).some((method) =>
    mayNeedApproval(connectors, { ...request, method }),
  );
  // Servers answer HEAD by doing what GET does (RFC 9110 section 9.3.2), which matters where that is more than reading.
  const gets = methods.includes('HEAD') ? operationsAs(connectors, request, 'GET') : [];
  const isGuardedGet = gets.some(({ approval, effect }) => approval === 'required' || effect !== 'read');
  return isAnother || isGuarded || isGuardedGet ? AMBIGUOUS_TARGET : null;
}

/** The methods of which an operation that needs an approval could be meant; a server may take one that it does not know for any. */
function listGuardingMethods({ method }: ResolvableRequest, possible: readonly string[]): readonly string[] {
  const others = possible.filter((each) => each !== method);
  if (possible.includes('HEAD')) others.push('GET');
  return possible.every((each) => KNOWN_METHODS.has(each)) ? others : OPERATION_METHODS;
}

/** The operations that a request would be with another method, however a server reads its path. */
function operationsAs(connectors: ConnectorIndex, request: ResolvableRequest, method: string): readonly Operation[] {
  return listReadings(connectors, { ...request, method }).flatMap((found) =>
    found.kind === 'operation' ? [found.match.operation] : [],
  );
}

/** What servers may take for the method of a request: its name in upper case, and what a header or the query overrides it with. */
function possibleMethods({ method, query = null, fields = NO_FIELDS }: ResolvableRequest): readonly string[] {
  const overrides = fields.filter(({ name }) => isMethodOverrideHeader(name)).map(({ value }) => value);
  const named = [...overrides, ...methodOverridesOfQuery(method, query)];
  return [method, ...named.map((name) => name.trim())].map((name) => name.toUpperCase());
}

/**
 * Goes from the left, so that the first suffix found is the longest; the host itself is never its own suffix. Tails
 * longer than every known suffix are not looked up, so that a name of many labels costs no more than another.
 */
function longestSuffix(
  bySuffix: ReadonlyMap<string, readonly HostBinding[]>,
  maxLength: number,
  host: string,
): readonly HostBinding[] {
  const start = Math.max(1, host.length - maxLength);
  for (let dot = host.indexOf('.', start); dot > 0; dot = host.indexOf('.', dot + 1)) {
    const found = bySuffix.get(host.slice(dot));
    if (found !== undefined) return found;
  }
  return NONE;
}

function add(groups: Map<string, HostBinding[]>, key: string, binding: HostBinding): void {
  const group = groups.get(key);
  const owner = group?.[0]?.owner;
  if (group === undefined || (owner === 'enterprise' && binding.owner === 'personal')) groups.set(key, [binding]);
  else if (owner === binding.owner) group.push(binding);
}
