import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { MCP_OAUTH_NAME, MCP_VAULT_PREFIX } from '../../shared/model/mcp_server.ts';

/** The vault path prefix reserved for connectors' credentials. */
export const CONNECTORS_PREFIX = 'connectors/';

/** Whether a reference is to a connector's credential. */
export function isOfConnector({ path }: CredentialRef): boolean {
  return path.startsWith(CONNECTORS_PREFIX);
}

/** The server's id and the credential's name if a reference is to a credential of an MCP server, else null. */
export function mcpCredentialOf({ path }: CredentialRef): { readonly serverId: string; readonly name: string } | null {
  const [prefix, serverId, name] = path.split('/');
  if (prefix !== MCP_VAULT_PREFIX || serverId === undefined || name === undefined) return null;
  return { serverId, name };
}

/** Whether the control plane may have to ask a provider for the credential, so that its reply can take long. */
export function mayAskProvider(ref: CredentialRef): boolean {
  return isOfConnector(ref) || mcpCredentialOf(ref)?.name === MCP_OAUTH_NAME;
}
