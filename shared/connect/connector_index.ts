import {
  connectorsInForce,
  MAX_PATH_SEGMENTS,
  operationHosts,
  type InstalledConnector,
  type Operation,
} from '../model/connector.ts';
import { pathReadings, segmentKey, withoutSuffixes } from '../net/http/path_readings.ts';
import type { GraphqlDocument } from './graphql_document.ts';
import { canonicalPath, isUndecidablePath } from '../net/http/target.ts';

/** An operation with the connector it belongs to. */
export interface ConnectorOperation {
  readonly connector: InstalledConnector;
  readonly operation: Operation;
  /** The GraphQL operation that a request asks for, once its body was read. */
  readonly document?: GraphqlDocument;
}

/** The parts of a request that decide which operation it is. */
interface OperationRequest {
  readonly method: string;
  /** Canonical (lower-case ASCII). */
  readonly host: string;
  /** The target's path as it was sent, without its query. */
  readonly path: string;
}

/** How the body decides which operation a request is. */
export type BodyKind = 'graphql' | 'json';

/**
 * `graphql` and `json`: the document or the JSON body decides which of the candidates the request is, if any. `ambiguous`:
 * several operations match equally well, so none is used (specification section 1).
 */
export type OperationMatch =
  | { readonly kind: 'operation'; readonly match: ConnectorOperation }
  | { readonly kind: BodyKind; readonly candidates: readonly ConnectorOperation[] }
  | { readonly kind: 'ambiguous'; readonly candidates: readonly ConnectorOperation[] }
  | { readonly kind: 'none' };

/** Installed connectors, compiled for lookup by host, method and path. */
export interface ConnectorIndex {
  readonly isEmpty: boolean;
  readonly hosts: ReadonlyMap<string, ReadonlyMap<string, Node>>;
  /** Hosts with an operation whose path ends with a slash: there every path has a second reading, with a slash appended. */
  readonly slashEndedHosts: ReadonlySet<string>;
  /** Hosts with guarded operations; per method, the table that loose readings are compared with. */
  readonly guarded: ReadonlyMap<string, ReadonlyMap<string, GuardedPaths>>;
  /** Hosts with an operation that is recognised by a GraphQL document. */
  readonly graphqlHosts: ReadonlySet<string>;
  /** Hosts with an operation that needs an approval. */
  readonly approvalHosts: ReadonlySet<string>;
}

/** All operations of a host and a method that has guarded ones, by the keys of their segments. */
interface GuardedPaths {
  readonly root: Node;
  /** True if the key of every literal is the literal itself: then a plain path has no other reading. */
  readonly isPlain: boolean;
  /** One more than the length of any literal at the end of a path. */
  readonly maxDots: number;
}

/** One segment of the paths of a host and method. */
interface Node {
  readonly literals: Map<string, Node>;
  template: Node | null;
  readonly ends: ConnectorOperation[];
}

/** On other hosts no path has a second reading. */
const MAY_BE_RESPELLED = /[%;\\#]|\/\/|\/\.|\/$/;
const MERGEABLE = /\/\/|\/\.{1,2}(?:\/|$)/;
const ENCODED_SLASH = /%2F|%5C/;
/** True if every segment is its own key, and none has a suffix. */
const PLAIN_PATH = /^(?:\/[a-z0-9_-]*[a-z0-9])+$/;
/** Format suffixes that a server may add to a path sent without one. */
const FORMAT_SUFFIX = /\.(?:json|xml|html?|txt|csv|ya?ml|js|atom|rss|pdf)$/i;
const NO_MATCH: OperationMatch = { kind: 'none' };

/** Compiles the connectors in force for lookup. */
export function compileConnectors(installed: readonly InstalledConnector[]): ConnectorIndex {
  const hosts = new Map<string, Map<string, Node>>();
  const slashEndedHosts = new Set<string>();
  const byHost = new Map<string, ConnectorOperation[]>();
  const graphqlHosts = new Set<string>();
  const approvalHosts = new Set<string>();
  for (const connector of connectorsInForce(installed)) {
    for (const operation of connector.spec.operations) {
      for (const host of new Set(operationHosts(connector.spec, operation))) {
        const methods = findOrMake(hosts, host, () => new Map<string, Node>());
        insert(findOrMake(methods, operation.method, emptyNode), { connector, operation });
        if (operation.path.endsWith('/')) slashEndedHosts.add(host);
        if (operation.graphql !== undefined) graphqlHosts.add(host);
        if (operation.approval === 'required') approvalHosts.add(host);
        findOrMake(byHost, host, () => []).push({ connector, operation });
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

/**
 * Operations that another spelling must not bypass: those that need an approval, and those whose body is inspected, because
 * some may need one.
 */
function isGuarded({ operation }: ConnectorOperation): boolean {
  return operation.approval === 'required' || operation.graphql !== undefined || operation.json !== undefined;
}

function isGraphql({ operation }: ConnectorOperation): boolean {
  return operation.graphql !== undefined;
}

/**
 * Finds the operation of a request. A literal segment beats a template in its place. If several operations match and none is
 * more literal, the request is ambiguous and matches none. A path has to match as sent: an escape never stands for the
 * character it encodes.
 */
export function matchOperation(index: ConnectorIndex, request: OperationRequest): OperationMatch {
  const operations = findFitting(index, request).flatMap(({ ends }) => ends);
  const [match] = operations;
  if (match === undefined) return NO_MATCH;
  const kind = bodyKindOf(operations);
  if (kind !== null) return { kind, candidates: operations };
  return operations.length === 1 ? { kind: 'operation', match } : { kind: 'ambiguous', candidates: operations };
}

/** A document that several connectors inspect is read as GraphQL, which accepts less. */
function bodyKindOf(operations: readonly ConnectorOperation[]): BodyKind | null {
  if (operations.some(isGraphql)) return 'graphql';
  return operations.some(({ operation }) => operation.json !== undefined) ? 'json' : null;
}

/** The operations that a path matches as sent, without those that a more literal one beats. */
function findFitting(index: ConnectorIndex, request: OperationRequest): readonly Found[] {
  const root = index.hosts.get(request.host)?.get(request.method);
  if (root === undefined || !request.path.startsWith('/')) return [];
  const found: Found[] = [];
  collect(root, request.path, 1, 0, found);
  return dropBeaten(found);
}

/**
 * True if a server could read the target as an operation that its raw form is not (design section 5, invariant 8), or if the
 * readings of servers cannot be known. Such a request would bypass the connector's approval and audit and get a binding's
 * credential. For an operation that needs an approval the most lenient reading of any server counts.
 */
export function evadesConnector(index: ConnectorIndex, request: OperationRequest): boolean {
  return isRespelled(index, request) || evadesApproval(index, request);
}

/**
 * True if a server could read the path as an operation that needs an approval and that the request is not. An operation with
 * more literal segments than that one is meant as sent.
 */
function evadesApproval(index: ConnectorIndex, request: OperationRequest): boolean {
  const guarded = index.guarded.get(request.host)?.get(request.method);
  if (guarded === undefined || (guarded.isPlain && PLAIN_PATH.test(request.path))) return false;
  return reaches(guarded, request.path, findFitting(index, request), isGuarded);
}

/** True if a server could read the path as an operation that needs an approval, including as sent. */
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
  return spellings.some((path) => isOtherMatch(raw, matchOperation(index, { ...request, path })));
}

/** The operation of a request as sent, and of each other spelling that a server could make of its path. */
export function listReadings(index: ConnectorIndex, request: OperationRequest): readonly OperationMatch[] {
  const spellings = mayBeRespelled(index, request) ? listOtherSpellings(index, request) : [];
  return [request.path, ...spellings].map((path) => matchOperation(index, { ...request, path }));
}

/**
 * True if the path, in any server's reading, is a GraphQL endpoint for any method. A request there that is none of its
 * operations is refused, because an uninspected document must not get a binding's credential.
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
 * The readings that servers make of a path: its canonical form, the same with encoded slashes decoded, both without a final
 * slash, and with one if that may be an operation.
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

function isOtherMatch(raw: OperationMatch, other: OperationMatch): boolean {
  if (other.kind === 'none') return false;
  if (isByBody(raw) && isByBody(other)) {
    const { length } = other.candidates;
    return (
      raw.candidates.length !== length ||
      raw.candidates.some(({ operation }, at) => operation !== other.candidates[at]?.operation)
    );
  }
  if (raw.kind !== 'operation' || other.kind !== 'operation') return raw.kind !== other.kind;
  return raw.match.operation !== other.match.operation;
}

/** Whether the body decides which of the candidates a request is. */
export function isByBody(found: OperationMatch): found is Extract<OperationMatch, { readonly kind: BodyKind }> {
  return found.kind === 'graphql' || found.kind === 'json';
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
    else node = findOrMake(node.literals, segment, emptyNode);
  }
  if (!node.ends.includes(operation)) node.ends.push(operation);
}

/** The matching operations of one path template, and which of its segments are literal: bit n for segment n. */
interface Found {
  readonly ends: readonly ConnectorOperation[];
  readonly literals: number;
  /** The number of its segments. */
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

/** The same over the keys of segments; the last one also without a possible format suffix. */
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

/** True if another one is literal wherever this one is, and somewhere else too. */
function isBeaten(literals: number, found: readonly Found[]): boolean {
  return found.some((other) => other.literals !== literals && (other.literals & literals) === literals);
}

/** An empty segment or a dot segment, in any spelling, is never the value of a path input. */
function fillsTemplate(segment: string): boolean {
  return segment !== '' && !/^(?:\.|%2e){1,2}$/i.test(segment);
}

function findOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
