import { fetchSources } from '../../bindings/fetch_sources.ts';
import { connectorRecord, connectorsPage, type ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { hostBindingsPage } from '../../../shared/wire/host_bindings.ts';
import { type McpServerRecord, mcpServersPage } from '../../../shared/wire/mcp/mcp_servers.ts';
import { type SecretRecord, secretsPage } from '../../../shared/wire/secrets.ts';
import type { SourceRecord } from '../../../shared/wire/secret_sources.ts';
import type { ClientCertificateRecord } from '../../../shared/wire/hosts/client_certificates.ts';
import { type TunnelHostRecord, tunnelHostsPage } from '../../../shared/wire/hosts/tunnel_hosts.ts';
import { parseOwnVaultPath } from '../../../shared/model/vault_path.ts';
import { listClientCertificates } from '../../certificates/client_certificates.ts';
import { fetchAllPages } from '../../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../../terminal/http_client.ts';

/** What a person owns in one control plane, without a value. */
export interface VaultContents {
  /** Those at paths of the person's own; the credentials of connectors and servers are with these. */
  readonly secrets: readonly SecretRecord[];
  readonly sources: readonly SourceRecord[];
  readonly bindings: readonly HostBindingRecord[];
  readonly tunnelHosts: readonly TunnelHostRecord[];
  /** Null: the control plane has an earlier version, which has none. */
  readonly certificates: readonly ClientCertificateRecord[] | null;
  readonly connectors: readonly ConnectorRecord[];
  readonly servers: readonly McpServerRecord[];
}

export async function readContents(client: HttpClient): Promise<VaultContents> {
  const owner = 'personal';
  const secrets = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  const connectors: ConnectorRecord[] = [];
  for (const { id } of await fetchAllPages(client, '/v1/connectors', connectorsPage, { owner })) {
    connectors.push(await client.call('GET', `/v1/connectors/${encodeURIComponent(id)}`, connectorRecord));
  }
  return {
    secrets: secrets.filter(({ path }) => parseOwnVaultPath(path).ok),
    sources: await fetchSources(client, owner),
    bindings: await fetchAllPages(client, '/v1/host-bindings', hostBindingsPage, { owner }),
    tunnelHosts: await fetchAllPages(client, '/v1/tunnel-hosts', tunnelHostsPage, { owner }),
    certificates: await listClientCertificates(client),
    connectors,
    servers: await fetchAllPages(client, '/v1/mcp-servers', mcpServersPage, { owner }),
  };
}

/** How many things the enterprise of a control plane owns: they do not move with a person. */
export async function countOfEnterprise(client: HttpClient): Promise<number> {
  const query = { owner: 'enterprise' };
  const counts = [
    (await fetchAllPages(client, '/v1/secrets', secretsPage, query)).length,
    (await fetchAllPages(client, '/v1/host-bindings', hostBindingsPage, query)).length,
    (await fetchAllPages(client, '/v1/tunnel-hosts', tunnelHostsPage, query)).length,
    (await fetchAllPages(client, '/v1/connectors', connectorsPage, query)).length,
    (await fetchAllPages(client, '/v1/mcp-servers', mcpServersPage, query)).length,
  ];
  return counts.reduce((sum, each) => sum + each, 0);
}
