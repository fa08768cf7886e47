import { findLimitedBindings } from '../../../shared/resolve/limited_bindings.ts';
import { toHostBinding, type HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { listAllConnectors } from '../connectors/all_connectors.ts';
import { type Caller, visibleOwners } from '../../kernel/caller.ts';
import { toInstalled } from '../connectors/connector_records.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** The ids and hosts of those bindings that have no effect and whose host has operations that need an approval. */
export async function limitsOf(
  context: ServiceContext,
  caller: Caller,
  bindings: readonly HostBindingRecord[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (bindings.every(({ effect }) => effect !== undefined)) return new Map();
  const connectors = await listAllConnectors(context, visibleOwners(caller));
  const limited = findLimitedBindings(bindings.map(toHostBinding), connectors.map(toInstalled));
  return new Map(limited.map(({ binding, hosts }) => [binding.id, hosts]));
}
