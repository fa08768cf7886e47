import type { InstalledConnector } from '../model/connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { compilePolicy } from './resolve.ts';

/** A binding that is read-only on some hosts, because it has no effect and the hosts have operations that need an approval. */
interface LimitedBinding {
  readonly binding: HostBinding;
  /** In the order of their names. */
  readonly hosts: readonly string[];
}

/** The bindings without an effect that are limited to reading because of operations that need an approval. */
export function findLimitedBindings(
  bindings: readonly HostBinding[],
  connectors: readonly InstalledConnector[],
): readonly LimitedBinding[] {
  const policy = compilePolicy(bindings, connectors);
  const hosts = [...policy.connectors.guarded.keys()].toSorted();
  return bindings.flatMap((binding) => {
    if (binding.effect !== undefined) return [];
    const limited = hosts.filter((host) => policy.bindingsFor(host).includes(binding));
    return limited.length === 0 ? [] : [{ binding, hosts: limited }];
  });
}
