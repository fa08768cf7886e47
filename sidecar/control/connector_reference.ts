import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { MCP_OAUTH_NAME, MCP_VAULT_PREFIX } from '../../shared/model/mcp_server.ts';

/** Of the vault, reserved for the credentials of connectors. */
export const CONNECTORS_PREFIX = 'connectors/';

/** Whether a reference is to a connector's credential. */
export function isOfConnector({ path }: CredentialRef): boolean {
  return path.startsWith(CONNECTORS_PREFIX);
}

/** Whether a reference is to a credential of an MCP server; null for any other, else the server's id and the name. */
export function mcpCredentialOf({ path }: CredentialRef): { readonly serverId: string; readonly name: string } | null {
  const [prefix, serverId, name] = path.split('/');
  if (prefix !== MCP_VAULT_PREFIX || serverId === undefined || name === undefined) return null;
  return { serverId, name };
}

/** Whether the control plane may have to ask a provider for the credential, so that its answer may take long. */
export function mayAskProvider(ref: CredentialRef): boolean {
  return isOfConnector(ref) || mcpCredentialOf(ref)?.name === MCP_OAUTH_NAME;
}
