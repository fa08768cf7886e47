import {
  compileConnectors,
  evadesConnector,
  isByBody,
  isGraphqlEndpoint,
  matchOperation,
  mayNeedApproval,
  listReadings,
  type BodyKind,
  type ConnectorIndex,
  type ConnectorOperation,
} from '../connect/connector_index.ts';
import { connectorsInForce, OPERATION_METHODS, type InstalledConnector, type Operation } from '../model/connector.ts';
import type { ClientCertificate } from '../model/host_binding.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { matchesHostPattern, parseHostPattern, type HostPattern } from '../net/host_pattern.ts';
import { isMethodOverrideHeader, mayNameMethod, methodOverridesOfQuery } from '../net/http/method_override.ts';
import { isPathOverrideHeader } from '../net/http/path_override.ts';

/** The current connectors and host bindings, compiled for lookup by host. */
export interface Policy {
  readonly connectors: ConnectorIndex;
  /** The connectors in force, one per name. */
  readonly installed: readonly InstalledConnector[];
  /** The connector with a name: the one in force, otherwise an inactive one. A personal one wins over the enterprise's. */
  connectorNamed(fqn: string): InstalledConnector | undefined;
  /**
   * Every binding of the winning pattern for a canonical host (lower-case ASCII): an exact host beats a wildcard, a longer
   * suffix a shorter one. Empty if no pattern matches.
   */
  bindingsFor(host: string): readonly HostBinding[];
  /** The client certificate of exactly this host; null if it has none. */
  certificateFor(host: string): ClientCertificate | null;
  /** The bindings that hand out a placeholder. */
  readonly placeholders: readonly HostBinding[];
  /**
   * Whether connections to a canonical host are carried without being intercepted (decision 0074): the list has the host, and
   * neither a binding, a connector nor a client certificate does, so that no credential and no rule is lost by it.
   */
  isTunnelled(host: string): boolean;
}

/** The parts of a request that decide its path through the proxy. */
export interface ResolvableRequest {
  readonly method: string;
  /** Canonical (lower-case ASCII). */
  readonly host: string;
  /** As it was sent, without the query. */
  readonly path: string;
  /** Without the `?`; null or absent if there is none. Used only to find a method override. */
  readonly query?: string | null;
  /** Only headers that override method or path are used, and only if the host has connectors. Names are in lower case. */
  readonly fields?: readonly { readonly name: string; readonly value: string }[];
}

/**
 * The path of a request through the proxy (specification section 1, Request resolution order). `ambiguous_target`: a server
 * could read the request as an operation that it is not as sent, so no path is right (design section 5, invariant 8).
 * `graphql` and `json`: the document or the JSON body decides which of the candidates the request is; if it is none of them,
 * it is refused.
 */
export type Resolution =
  | { readonly kind: 'connector'; readonly match: ConnectorOperation }
  | ByBody
  | { readonly kind: 'ambiguous_target' }
  | BindingResolution
  | { readonly kind: 'passthrough' };

/** The operations that a request may be. */
export interface ByBody {
  readonly kind: BodyKind;
  readonly candidates: readonly ConnectorOperation[];
}

/** If there are several bindings, the credentials in the request choose one. */
export interface BindingResolution {
  readonly kind: 'binding';
  readonly bindings: readonly HostBinding[];
  /** The host has operations that need an approval, so a binding without an effect is read-only there. */
  readonly besideApprovals: boolean;
}

/** Whether a request is an operation of a connector, or may be one: its effect and approval are checked by themselves. */
export function isOperation({ kind }: Resolution): boolean {
  return kind !== 'passthrough' && kind !== 'binding';
}

const KNOWN_METHODS: ReadonlySet<string> = new Set([...OPERATION_METHODS, 'OPTIONS']);
const AMBIGUOUS_TARGET: Resolution = { kind: 'ambiguous_target' };
const NO_GRAPHQL_OPERATION: Resolution = { kind: 'graphql', candidates: [] };
const PASSTHROUGH: Resolution = { kind: 'passthrough' };
const NONE: readonly HostBinding[] = [];
const NO_FIELDS: NonNullable<ResolvableRequest['fields']> = [];

/**
 * Compiles bindings (with canonical hosts) for lookup: one map lookup for the exact host, then one per label. For the same
 * pattern, personal bindings replace the enterprise's; their order is kept.
 */
export function compilePolicy(
  bindings: readonly HostBinding[],
  connectors: readonly InstalledConnector[] = [],
  tunnelled: readonly string[] = [],
  certificates: readonly ClientCertificate[] = [],
): Policy {
  const exact = new Map<string, HostBinding[]>();
  const bySuffix = new Map<string, HostBinding[]>();
  for (const binding of bindings) {
    if (binding.host.startsWith('*')) add(bySuffix, binding.host.slice(1), binding);
    else add(exact, binding.host, binding);
  }
  const installed = connectorsInForce(connectors);
  const maxLength = Array.from(bySuffix.keys()).reduce((max, suffix) => Math.max(max, suffix.length), 0);
  const index = compileConnectors(connectors);
  const bindingsFor = (host: string): readonly HostBinding[] =>
    exact.get(host) ?? longestSuffix(bySuffix, maxLength, host);
  const byHost = new Map(certificates.map((certificate) => [certificate.host, certificate]));
  const listed = tunnelled.map(parseHostPattern).flatMap((each): HostPattern[] => (each.ok ? [each.value] : []));
  const isListed = (host: string): boolean => listed.some((pattern) => matchesHostPattern(pattern, host));
  return {
    connectors: index,
    installed,
    connectorNamed: (fqn) => findNamed(installed, fqn) ?? findNamed(connectors, fqn),
    placeholders: bindings.filter(({ emit }) => emit.mechanism === 'sentinel-swap'),
    bindingsFor,
    certificateFor: (host) => byHost.get(host) ?? null,
    isTunnelled: (host) =>
      isListed(host) && bindingsFor(host).length === 0 && !index.hosts.has(host) && !byHost.has(host),
  };
}

function findNamed(connectors: readonly InstalledConnector[], fqn: string): InstalledConnector | undefined {
  const named = connectors.filter(({ spec }) => spec.fqn === fqn);
  return named.find(({ owner }) => owner === 'personal') ?? named[0];
}

/**
 * Whether the binding that applies to this host names it, or has it among its allowed hosts. A wildcard alone names no host,
 * because whoever runs the zone decides where its names lead.
 */
export function isNamedByBinding(policy: Policy, host: string): boolean {
  return policy.bindingsFor(host).some((binding) => binding.host === host || binding.allowedHosts.includes(host));
}

/** Decides which path a request takes; the bindings are those of the winning pattern for its host. */
export function resolve(policy: Policy, request: ResolvableRequest): Resolution {
  const byConnector = policy.connectors.hosts.has(request.host) ? resolveOperation(policy.connectors, request) : null;
  if (byConnector !== null) return byConnector;
  const bindings = policy.bindingsFor(request.host);
  if (bindings.length === 0) return PASSTHROUGH;
  return { kind: 'binding', bindings, besideApprovals: policy.connectors.approvalHosts.has(request.host) };
}

/**
 * Whether a server could read a request as another operation because of a `_method` in its body, as frameworks do. `body`
 * returns it as latin1, and is called only if there is such an operation.
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

/** Null if the request is not an operation, or would be several: then it goes on to the bindings. */
function resolveOperation(connectors: ConnectorIndex, request: ResolvableRequest): Resolution | null {
  if (evadesConnector(connectors, request)) return AMBIGUOUS_TARGET;
  if (request.fields?.some(({ name }) => isPathOverrideHeader(name)) === true) return AMBIGUOUS_TARGET;
  const found = matchOperation(connectors, request);
  if (found.kind === 'operation') return { kind: 'connector', match: found.match };
  // A login's token URL is no passthrough because another connector names the same request: the placeholders would be sent.
  if (found.kind === 'ambiguous' && found.candidates.some(isOfLogin)) return AMBIGUOUS_TARGET;
  if (isByBody(found)) return found.candidates.some(isOfLogin) ? AMBIGUOUS_TARGET : found;
  if (isGraphqlEndpoint(connectors, request)) return NO_GRAPHQL_OPERATION;
  const methods = possibleMethods(request);
  const isAnother = methods.some(
    (method) => method !== request.method && operationsAs(connectors, request, method).length > 0,
  );
  const isGuarded = listGuardingMethods(request, methods).some((method) =>
    mayNeedApproval(connectors, { ...request, method }),
  );
  // Servers answer HEAD by performing a GET (RFC 9110 section 9.3.2), which matters if that is more than reading.
  const gets = methods.includes('HEAD') ? operationsAs(connectors, request, 'GET') : [];
  const isGuardedGet = gets.some(({ approval, effect }) => approval === 'required' || effect !== 'read');
  return isAnother || isGuarded || isGuardedGet ? AMBIGUOUS_TARGET : null;
}

function isOfLogin({ connector }: ConnectorOperation): boolean {
  return connector.spec.credential.login !== undefined;
}

/** The methods by which an operation that needs an approval could be reached; a server may treat an unknown method as any. */
function listGuardingMethods({ method }: ResolvableRequest, possible: readonly string[]): readonly string[] {
  const others = possible.filter((each) => each !== method);
  if (possible.includes('HEAD')) others.push('GET');
  return possible.every((each) => KNOWN_METHODS.has(each)) ? others : OPERATION_METHODS;
}

/** The operations that a request would be with another method, in any server's reading of its path. */
function operationsAs(connectors: ConnectorIndex, request: ResolvableRequest, method: string): readonly Operation[] {
  return listReadings(connectors, { ...request, method }).flatMap((found) => {
    if (found.kind === 'operation') return [found.match.operation];
    return found.kind === 'json' ? found.candidates.map(({ operation }) => operation) : [];
  });
}

/** The methods that servers may see in a request: its own in upper case, and those in overriding headers or the query. */
function possibleMethods({ method, query = null, fields = NO_FIELDS }: ResolvableRequest): readonly string[] {
  const overrides = fields.filter(({ name }) => isMethodOverrideHeader(name)).map(({ value }) => value);
  const named = [...overrides, ...methodOverridesOfQuery(method, query)];
  return [method, ...named.map((name) => name.trim())].map((name) => name.toUpperCase());
}

/**
 * Scans from the left, so that the first suffix found is the longest; the host itself is never its own suffix. Tails longer
 * than every known suffix are skipped, so that many labels cost no more.
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
