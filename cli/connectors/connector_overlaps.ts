import { compileConnectors, matchOperation } from '../../shared/connect/connector_index.ts';
import {
  connectorVaultPath,
  operationHosts,
  type ConnectorSpec,
  type Operation,
} from '../../shared/model/connector.ts';

/**
 * Finds pairs of operations that overlap: a request that matches both counts as neither (specification section 1). For each
 * pair, a path that fits both is resolved as a request would be.
 */
export function overlapWarnings(spec: ConnectorSpec): string[] {
  const credential = { owner: 'personal', path: connectorVaultPath(spec.fqn) } as const;
  const index = compileConnectors([{ id: '', owner: 'personal', spec, contentHash: '', credential }]);
  const alike = Map.groupBy(spec.operations, ({ method, path }) => `${method} ${path.split('/').length}`);
  return [...alike.values()].flatMap((operations) =>
    operations.flatMap((one, at) =>
      operations.slice(at + 1).flatMap((other) => {
        const [host] = findSharedHosts(spec, one, other);
        const path = pathOfBoth(one.path, other.path);
        if (host === undefined || path === null) return [];
        if (matchOperation(index, { method: one.method, host, path }).kind !== 'ambiguous') return [];
        return [
          `${one.name} and ${other.name} overlap: a request such as ${one.method} ${path} matches both, so it counts as neither`,
        ];
      }),
    ),
  );
}

function findSharedHosts(spec: ConnectorSpec, one: Operation, other: Operation): readonly string[] {
  const hosts = operationHosts(spec, other);
  return operationHosts(spec, one).filter((host) => hosts.includes(host));
}

/** A path that fits both templates; null if there is none. */
function pathOfBoth(one: string, other: string): string | null {
  const others = other.split('/');
  const segments = one.split('/').map((segment, at) => {
    const opposite = others[at] ?? '';
    if (!segment.startsWith('{')) return opposite.startsWith('{') || opposite === segment ? segment : null;
    return opposite.startsWith('{') ? 'x' : opposite;
  });
  return segments.includes(null) ? null : segments.join('/');
}
