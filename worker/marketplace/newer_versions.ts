import type { McpServerRecord } from '../../shared/wire/mcp_servers.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findMirror } from '../store/registry_mirrors.ts';
import { findDocuments } from '../store/registry_servers.ts';
import { lookAfterMirror } from './browse.ts';
import { entryOf } from './registry_record.ts';
import { fittingPlan } from './upgrade_configuration.ts';

/**
 * By the server's id, the version that an upgrade would go to, where it is another one than is installed. As the mirror knows
 * it: nobody waits for the registry, and without a mirror nothing is said.
 */
export async function newerVersions(
  context: MarketplaceContext,
  servers: readonly McpServerRecord[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Set(servers.flatMap(({ registry_id: name }) => (name === null ? [] : [name])));
  if (names.size === 0) return new Map();
  const mirror = await findMirror(context.database, context.registry.url);
  lookAfterMirror(context, mirror);
  const documents = mirror === null ? null : await findDocuments(context.database, mirror.id, [...names]);
  const newer = new Map<string, string>();
  for (const server of servers) {
    const document = documents?.get(server.registry_id ?? '');
    if (document === undefined) continue;
    const entry = entryOf(document);
    const version = fittingPlan(entry, server)?.version ?? entry.version;
    if (version !== null && version !== server.version) newer.set(server.id, version);
  }
  return newer;
}
