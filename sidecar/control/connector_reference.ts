import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { mcpServerOfToken } from '../../shared/model/mcp_server.ts';

/** The vault path prefix reserved for connectors' credentials. */
export const CONNECTORS_PREFIX = 'connectors/';

/** Whether a reference is to a connector's credential. */
export function isOfConnector({ path }: CredentialRef): boolean {
  return path.startsWith(CONNECTORS_PREFIX);
}

/** Whether the control plane may have to ask a provider for the credential, so that its reply can take long. */
export function mayAskProvider(ref: CredentialRef): boolean {
  return isOfConnector(ref) || mcpServerOfToken(ref.path) !== null;
}
