import { areDisjoint } from '../../../shared/connect/json_rules.ts';
import { connectorHosts, type ConnectorSpec, type Operation, operationHosts } from '../../../shared/model/connector.ts';
import { isAtOrBelow } from '../../../shared/net/http/plain_path.ts';

const MOST_WARNINGS = 20;

/**
 * Warnings about a spec: pairs of operations that some requests match equally well, so that such requests match
 * neither, hosts that will newly receive a stored credential, a login whose tokens may not stay, and ranges without a least
 * number.
 */
export function connectorWarnings(spec: ConnectorSpec, before: ConnectorSpec | null): string[] {
  return [...newHosts(spec, before), ...ambiguousPairs(spec), ...openRanges(spec)].slice(0, MOST_WARNINGS);
}

/** Whoever limits an amount from above seldom means that it may be negative. */
function openRanges(spec: ConnectorSpec): string[] {
  return spec.operations.flatMap(({ name, json = [] }) =>
    json
      .filter(({ atLeast, atMost }) => atMost !== undefined && atLeast === undefined)
      .map(
        ({ pointer, atMost }) =>
          `${name} has every number up to ${atMost} at ${pointer}, also negative ones: add at_least`,
      ),
  );
}

function newHosts(spec: ConnectorSpec, before: ConnectorSpec | null): string[] {
  if (before === null) return [];
  if (isOtherLogin(spec, before)) {
    return [`version ${spec.version} changes where the tokens of this login may go, so they are deleted: log in again`];
  }
  const added = listAddedHosts(spec, before);
  if (added.length === 0) return [];
  return [
    `${added.join(', ')} did not receive the credential before version ${spec.version}, and may receive it from now on`,
  ];
}

/** The hosts that get the credential of a spec, and did not get that of the earlier one. */
export function listAddedHosts(spec: ConnectorSpec, before: ConnectorSpec): readonly string[] {
  const known = connectorHosts(before);
  return connectorHosts(spec).filter((host) => !known.includes(host));
}

/**
 * Whether a version of a connector must not have the tokens of a login that the earlier one kept: it is no login any more, or of
 * another client or token URL, or its access token would go to further hosts or paths.
 */
export function isOtherLogin({ credential: now }: ConnectorSpec, { credential: before }: ConnectorSpec): boolean {
  if (before.login === undefined && now.login === undefined) return false;
  if (before.login === undefined || now.login === undefined || now.tokenUrl !== before.tokenUrl) return true;
  const { clientId, hosts, paths } = before.login;
  if (now.login.clientId !== clientId) return true;
  return (
    !now.login.hosts.every((host) => hosts.includes(host)) || !now.login.paths.every((path) => isAtOrBelow(path, paths))
  );
}

/** Operations at one GraphQL endpoint are distinguished by their documents, and those with rules by their JSON bodies. */
function ambiguousPairs(spec: ConnectorSpec): string[] {
  const warnings: string[] = [];
  const groups = Map.groupBy(spec.operations, ({ method, path }) => `${method} ${path.split('/').length}`);
  for (const operations of groups.values()) {
    const split = operations.map((operation) => ({ operation, segments: operation.path.split('/') }));
    for (const [index, one] of split.entries()) {
      for (const other of split.slice(index + 1)) {
        if (one.operation.graphql !== undefined && other.operation.graphql !== undefined) continue;
        if (!shareHost(spec, one.operation, other.operation) || !isAmbiguous(one.segments, other.segments)) continue;
        const warning = describeOverlap(one.operation, other.operation);
        if (warning !== null) warnings.push(warning);
      }
    }
  }
  return warnings;
}

/** Null if no request is both. An operation without rules has the bodies that no rules fit. */
function describeOverlap(one: Operation, other: Operation): string | null {
  const both = `${one.name} and ${other.name} overlap`;
  if (one.json === undefined && other.json === undefined)
    return `${both}: a request that matches both ${one.path} and ${other.path} matches neither operation, so it is not a connector request`;
  if (one.json === undefined || other.json === undefined || areDisjoint(one.json, other.json)) return null;
  return `${both}: a request whose JSON body satisfies the rules of both is refused`;
}

function shareHost(spec: ConnectorSpec, one: Operation, other: Operation): boolean {
  const hosts = operationHosts(spec, other);
  return operationHosts(spec, one).some((host) => hosts.includes(host));
}

/** Some path matches both, and neither is more literal wherever they differ. */
function isAmbiguous(one: readonly string[], other: readonly string[]): boolean {
  let oneIsMoreLiteral = false;
  let otherIsMoreLiteral = false;
  for (const [index, segment] of one.entries()) {
    const opposite = other[index] ?? '';
    const [isTemplate, isOppositeTemplate] = [segment.startsWith('{'), opposite.startsWith('{')];
    if (!isTemplate && !isOppositeTemplate && segment !== opposite) return false;
    if (!isTemplate && isOppositeTemplate) oneIsMoreLiteral = true;
    if (isTemplate && !isOppositeTemplate) otherIsMoreLiteral = true;
  }
  return oneIsMoreLiteral === otherIsMoreLiteral;
}
