import { MAX_PATH_SEGMENTS, operationHosts, type InstalledConnector, type Operation } from '../model/connector.ts';
import { pathReadings, segmentKey, withoutSuffixes } from '../net/path_readings.ts';
import type { GraphqlDocument } from './graphql_document.ts';
import { canonicalPath, isUndecidablePath } from '../net/target.ts';

/** An operation with the connector it belongs to. */
export interface ConnectorOperation {
  readonly connector: InstalledConnector;
  readonly operation: Operation;
  /** What a request to a GraphQL endpoint asks for, once its body was read. */
  readonly document?: GraphqlDocument;
}

/** What of a request decides which operation it is. */
export interface OperationRequest {
  readonly method: string;
  /** Canonical (lower-case ASCII). */
  readonly host: string;
  /** The path of the target as it was sent, without its query. */
  readonly path: string;
}

/**
 * `graphql`: the request's document decides which of the candidates it is, if any. `ambiguous`: several operations match
 * equally well, and so none does (specification section 1).
 */
export type OperationMatch =
  | { readonly kind: 'operation'; readonly match: ConnectorOperation }
  | { readonly kind: 'graphql'; readonly candidates: readonly ConnectorOperation[] }
  | { readonly kind: 'ambiguous'; readonly candidates: readonly ConnectorOperation[] }
  | { readonly kind: 'none' };

/** Installed connectors, compiled for lookup by host, method and path. */
export interface ConnectorIndex {
  readonly isEmpty: boolean;
  readonly hosts: ReadonlyMap<string, ReadonlyMap<string, Node>>;
  /** Hosts with an operation whose path ends with a slash: there every path has a second reading, with one more. */
  readonly slashEndedHosts: ReadonlySet<string>;
  /** Hosts with guarded operations, and for each method that has some, what loose readings are compared with. */
  readonly guarded: ReadonlyMap<string, ReadonlyMap<string, GuardedPaths>>;
  /** Hosts with an operation that is recognised by a GraphQL document. */
  readonly graphqlHosts: ReadonlySet<string>;
  /** Hosts with an operation that needs an approval. */
  readonly approvalHosts: ReadonlySet<string>;
}

/** All operations of a host and a method, some of which are guarded, by the keys of their segments. */
interface GuardedPaths {
  readonly root: Node;
  /** True when the key of every literal is the literal: a plain path then has no other reading than itself. */
  readonly isPlain: boolean;
  /** One more than any literal at the end of a path has. */
  readonly maxDots: number;
}

/** One segment of the paths of a host and method. */
interface Node {
  readonly literals: Map<string, Node>;
  template: Node | null;
  readonly ends: ConnectorOperation[];
}

/** Elsewhere no other path has a second reading. */
const MAY_BE_RESPELLED = /[%;\\#]|\/\/|\/\.|\/$/;
const MERGEABLE = /\/\/|\/\.{1,2}(?:\/|$)/;
const ENCODED_SLASH = /%2F|%5C/;
/** Every segment is its own key, and none has a suffix. */
const PLAIN_PATH = /^(?:\/[a-z0-9_-]*[a-z0-9])+$/;
/** Formats that a server may add to a path that is sent without one. */
const FORMAT_SUFFIX = /\.(?:json|xml|html?|txt|csv|ya?ml|js|atom|rss|pdf)$/i;
const NO_MATCH: OperationMatch = { kind: 'none' };

/**
 * Compiles connectors for lookup. Of two with one fully qualified name the personal one replaces the enterprise's, as a
 * personal binding does.
 */
export function compileConnectors(installed: readonly InstalledConnector[]): ConnectorIndex {
  const hosts = new Map<string, Map<string, Node>>();
  const slashEndedHosts = new Set<string>();
  const byHost = new Map<string, ConnectorOperation[]>();
  const graphqlHosts = new Set<string>();
  const approvalHosts = new Set<string>();
  for (const connector of selectInForce(installed)) {
    for (const operation of connector.spec.operations) {
      for (const host of new Set(operationHosts(connector.spec, operation))) {
        const methods = entry(hosts, host, () => new Map<string, Node>());
        insert(entry(methods, operation.method, emptyNode), { connector, operation });
        if (operation.path.endsWith('/')) slashEndedHosts.add(host);
        if (operation.graphql !== undefined) graphqlHosts.add(host);
        if (operation.approval === 'required') approvalHosts.add(host);
        entry(byHost, host, () => []).push({ connector, operation });
      }
    }
  }
  const guarded = new Map(Array.from(byHost, ([host, operations]) => [host, mapGuardedMethods(operations)] as const));
  for (const [host, methods] of guarded) if (methods.size === 0) guarded.delete(host);
  return { isEmpty: hosts.size === 0, hosts, slashEndedHosts, graphqlHosts, approvalHosts, guarded };
}

function mapGuardedMethods(operations: readonly ConnectorOperation[]): ReadonlyMap<string, GuardedPaths> {
  const methods = new Set(operations.filter(isGuarded).map(({ operation }) => operation.method));
  const ofMethod = (method: string) => operations.filter(({ operation }) => operation.method === method);
  return new Map(Array.from(methods, (method) => [method, buildGuardedPaths(ofMethod(method))] as const));
}

function buildGuardedPaths(operations: readonly ConnectorOperation[]): GuardedPaths {
  const root = emptyNode();
  let maxDots = 1;
  for (const each of operations) {
    const { path } = each.operation;
    const last = path.slice(path.lastIndexOf('/') + 1);
    maxDots = Math.max(maxDots, last.split('.').length);
    for (const { segments } of pathReadings(path) ?? []) insertSegments(root, segments, each);
    const segments = path
      .replace(FORMAT_SUFFIX, '')
      .split('/')
      .filter((segment) => segment !== '');
    insertSegments(
      root,
      segments.map((segment) => segmentKey(segment)),
      each,
    );
  }
  const isPlain = operations.every(({ operation }) => PLAIN_PATH.test(operation.path.replaceAll(/\{[^}]*\}/g, 'x')));
  return { root, isPlain, maxDots };
}

/** What a spelling must not get round: an approval, and the look at a document, of which some may need one. */
function isGuarded({ operation }: ConnectorOperation): boolean {
  return operation.approval === 'required' || operation.graphql !== undefined;
}

function isGraphql({ operation }: ConnectorOperation): boolean {
  return operation.graphql !== undefined;
}

/**
 * The operation a request is. A literal segment beats a template at its place; operations of which neither is the more
 * literal one are ambiguous, and so none is a match. A path has to match as it was sent: an escape never stands for the
 * character it encodes.
 */
export function matchOperation(index: ConnectorIndex, request: OperationRequest): OperationMatch {
  const operations = findFitting(index, request).flatMap(({ ends }) => ends);
  const [match] = operations;
  if (match === undefined) return NO_MATCH;
  if (operations.some(({ operation }) => operation.graphql !== undefined))
    return { kind: 'graphql', candidates: operations };
  return operations.length === 1 ? { kind: 'operation', match } : { kind: 'ambiguous', candidates: operations };
}

/** The operations that a path fits as it was sent; of several, those that no more literal one beats. */
function findFitting(index: ConnectorIndex, request: OperationRequest): readonly Found[] {
  const root = index.hosts.get(request.host)?.get(request.method);
  if (root === undefined || !request.path.startsWith('/')) return [];
  const found: Found[] = [];
  collect(root, request.path, 1, 0, found);
  return dropBeaten(found);
}

/**
 * True when a server could read the target as an operation that its raw form is not (design section 5, invariant 8), or
 * when nobody can say how servers read it: such a request would slip past the connector's approval and audit into a binding.
 * What stands for an operation that needs an approval is judged by the most generous reading of any server.
 */
export function evadesConnector(index: ConnectorIndex, request: OperationRequest): boolean {
  return isRespelled(index, request) || evadesApproval(index, request);
}

/**
 * True when a server could read the path as that of an operation which needs an approval and which the request is not.
 * An operation that names its segments more literally than that one is meant as it was sent.
 */
function evadesApproval(index: ConnectorIndex, request: OperationRequest): boolean {
  const guarded = index.guarded.get(request.host)?.get(request.method);
  if (guarded === undefined || (guarded.isPlain && PLAIN_PATH.test(request.path))) return false;
  return reaches(guarded, request.path, findFitting(index, request), isGuarded);
}

/** True when a server could read the path as that of an operation which needs an approval, be it as it was sent. */
export function mayNeedApproval(index: ConnectorIndex, request: OperationRequest): boolean {
  const guarded = index.guarded.get(request.host)?.get(request.method);
  return guarded !== undefined && reaches(guarded, request.path, [], isGuarded);
}

function reaches(
  guarded: GuardedPaths,
  path: string,
  raw: readonly Found[],
  isMeant: (operation: ConnectorOperation) => boolean,
): boolean {
  const spellings = pathReadings(path);
  if (spellings === null) return true;
  const sent = raw.flatMap(({ ends }) => ends);
  const isApproved = sent.some(isGuarded);
  return spellings.some(({ segments, isCut }) => {
    if ((isCut && isApproved) || segments.length > MAX_PATH_SEGMENTS) return false;
    const found: Found[] = [];
    collectKeys(guarded, segments, guarded.root, 0, found);
    return dropBeaten(found).some(
      ({ ends, literals }) =>
        ends.some((end) => isMeant(end) && !sent.some(({ operation }) => operation === end.operation)) &&
        !raw.some((each) => each.depth === segments.length && (each.literals & literals) === literals),
    );
  });
}

function isRespelled(index: ConnectorIndex, request: OperationRequest): boolean {
  if (!mayBeRespelled(index, request)) return false;
  if (isUndecidablePath(request.path)) return true;
  const spellings = listOtherSpellings(index, request);
  if (spellings.length === 0) return false;
  const raw = matchOperation(index, request);
  return spellings.some((path) => differs(raw, matchOperation(index, { ...request, path })));
}

/** What a request is as it stands, and in each other spelling that a server could make of its path. */
export function listReadings(index: ConnectorIndex, request: OperationRequest): readonly OperationMatch[] {
  const spellings = mayBeRespelled(index, request) ? listOtherSpellings(index, request) : [];
  return [request.path, ...spellings].map((path) => matchOperation(index, { ...request, path }));
}

/**
 * True when the path of a request, however a server reads it, is a GraphQL endpoint by whichever method: what is none of its
 * operations is refused then, for a document that nobody looked into must not find a binding.
 */
export function isGraphqlEndpoint(index: ConnectorIndex, request: OperationRequest): boolean {
  if (!index.graphqlHosts.has(request.host)) return false;
  const methods = [...(index.guarded.get(request.host)?.values() ?? [])];
  return methods.some((guarded) => reaches(guarded, request.path, [], isGraphql));
}

function mayBeRespelled({ hosts, slashEndedHosts }: ConnectorIndex, { host, path }: OperationRequest): boolean {
  return slashEndedHosts.has(host) || (MAY_BE_RESPELLED.test(path) && hosts.has(host));
}

/**
 * What servers make of a path: its canonical form and the same with encoded slashes decoded, each without a last slash, and
 * with one where that may be an operation.
 */
function listOtherSpellings({ slashEndedHosts }: ConnectorIndex, { host, path }: OperationRequest): readonly string[] {
  const canonical = canonicalPath(path);
  const forms = [canonical];
  if (ENCODED_SLASH.test(canonical)) {
    const split = canonical.replaceAll(/%2F|%5C/g, '/');
    forms.push(MERGEABLE.test(split) ? canonicalPath(split) : split);
  }
  const spellings = forms.flatMap((form) => {
    const bare = form.length > 1 && form.endsWith('/') ? form.slice(0, -1) : form;
    return slashEndedHosts.has(host) ? [form, bare, `${bare}/`] : [form, bare];
  });
  return spellings.filter((spelling, at) => spelling !== path && spellings.indexOf(spelling) === at);
}

function differs(raw: OperationMatch, other: OperationMatch): boolean {
  if (other.kind === 'none') return false;
  if (raw.kind === 'graphql' && other.kind === 'graphql') {
    return raw.candidates.some(({ operation }, at) => operation !== other.candidates[at]?.operation);
  }
  if (raw.kind !== 'operation' || other.kind !== 'operation') return raw.kind !== other.kind;
  return raw.match.operation !== other.match.operation;
}

function selectInForce(installed: readonly InstalledConnector[]): readonly InstalledConnector[] {
  const byName = new Map<string, InstalledConnector>();
  for (const connector of installed) {
    const known = byName.get(connector.spec.fqn);
    if (known === undefined || connector.owner === 'personal') byName.set(connector.spec.fqn, connector);
  }
  return [...byName.values()];
}

function emptyNode(): Node {
  return { literals: new Map(), template: null, ends: [] };
}

function insert(root: Node, operation: ConnectorOperation): void {
  insertSegments(root, operation.operation.path.slice(1).split('/'), operation);
}

function insertSegments(root: Node, segments: readonly string[], operation: ConnectorOperation): void {
  let node = root;
  for (const segment of segments) {
    if (segment.startsWith('{')) node = node.template ??= emptyNode();
    else node = entry(node.literals, segment, emptyNode);
  }
  if (!node.ends.includes(operation)) node.ends.push(operation);
}

/** Operations of one path template that fit, and which of its segments are literal: bit n for segment n. */
interface Found {
  readonly ends: readonly ConnectorOperation[];
  readonly literals: number;
  /** How many segments it has. */
  readonly depth: number;
}

function collect(node: Node, path: string, from: number, depth: number, found: Found[], literals = 0): void {
  if (depth >= MAX_PATH_SEGMENTS) return;
  const slash = path.indexOf('/', from);
  const segment = slash < 0 ? path.slice(from) : path.slice(from, slash);
  const literal = node.literals.get(segment);
  const next = node.template !== null && fillsTemplate(segment) ? node.template : null;
  for (const [branch, bit] of [[literal, 1 << depth] as const, [next, 0] as const]) {
    if (branch === undefined || branch === null) continue;
    if (slash >= 0) collect(branch, path, slash + 1, depth + 1, found, literals | bit);
    else if (branch.ends.length > 0) found.push({ ends: branch.ends, literals: literals | bit, depth: depth + 1 });
  }
}

/** The same over the keys of segments; the last one also without what may be a format's suffix. */
function collectKeys(
  guarded: GuardedPaths,
  segments: readonly string[],
  node: Node,
  depth: number,
  found: Found[],
  literals = 0,
): void {
  const key = segments[depth];
  if (key === undefined) {
    if (node.ends.length > 0) found.push({ ends: node.ends, literals, depth });
    return;
  }
  const isLast = depth === segments.length - 1;
  const keys = isLast && key.includes('.') ? [key, ...withoutSuffixes(key, guarded.maxDots)] : [key];
  for (const each of keys) {
    const literal = node.literals.get(each);
    if (literal !== undefined) collectKeys(guarded, segments, literal, depth + 1, found, literals | (1 << depth));
  }
  if (node.template !== null) collectKeys(guarded, segments, node.template, depth + 1, found, literals);
}

function dropBeaten(found: readonly Found[]): readonly Found[] {
  return found.length < 2 ? found : found.filter(({ literals }) => !isBeaten(literals, found));
}

/** Another one is literal wherever this one is, and somewhere else too. */
function isBeaten(literals: number, found: readonly Found[]): boolean {
  return found.some((other) => other.literals !== literals && (other.literals & literals) === literals);
}

/** An empty segment or a dot segment, however it is spelled, is never the value of a path input. */
function fillsTemplate(segment: string): boolean {
  return segment !== '' && !/^(?:\.|%2e){1,2}$/i.test(segment);
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
