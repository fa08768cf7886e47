import { toMcpServer, type ValidMcpServer } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { McpServerRow } from '../../store/mcp/mcp_servers.ts';

/** A configuration as stored: its references contain the server's own id. */
export type McpConfiguration = Omit<ValidMcpServer, 'registry_id'> & { readonly registry_id: string | null };

/** The configuration of a row, validated when it was written. */
export function configurationOf(row: Pick<McpServerRow, 'record'>): McpConfiguration {
  const configuration: McpConfiguration = JSON.parse(row.record);
  return configuration;
}

/** The server in the format of gateways. */
export function serverOf(row: Pick<McpServerRow, 'id' | 'revision' | 'record'>) {
  return toMcpServer({ ...configurationOf(row), id: row.id, revision: row.revision });
}
