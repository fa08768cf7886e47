import type { CredentialRef } from '../../shared/model/host_binding.ts';

/** Of the vault, reserved for the credentials of connectors. */
export const CONNECTORS_PREFIX = 'connectors/';

/** Whether a reference is to a connector's credential, which the control plane may have to ask a provider for. */
export function isOfConnector({ path }: CredentialRef): boolean {
  return path.startsWith(CONNECTORS_PREFIX);
}
