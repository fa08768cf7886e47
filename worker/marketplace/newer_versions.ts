import type { McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import type { MarketplaceContext } from './marketplace_context.ts';
import { findMirror } from '../store/registry_mirrors.ts';
import { findDocuments } from '../store/registry_servers.ts';
import { lookAfterMirror } from './browse.ts';
import { entryOf } from './registry_record.ts';
import { findFittingPlan } from './upgrade_configuration.ts';

/**
 * The versions that servers can be upgraded to, by server id, if they differ from the installed ones. Uses only the
 * mirror; empty without one.
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
    const version = findFittingPlan(entry, server)?.version ?? entry.version;
    if (version !== null && version !== server.version) newer.set(server.id, version);
  }
  return newer;
}
