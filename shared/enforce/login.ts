import { connectorOfVaultPath, type InstalledConnector } from '../model/connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';

/**
 * Checks a binding that uses the credential of a connector: now, as when it was made, that must be the login of a program, and
 * name this host. The connector may have been replaced since. Refuses with `host_not_allowed`.
 */
export function enforceLogin(
  { credential }: HostBinding,
  installed: readonly InstalledConnector[],
  host: string,
): Result<void, Refusal> {
  const fqn = connectorOfVaultPath(credential.path);
  if (fqn === null) return ok(undefined);
  const keeper = installed.find(({ owner, spec }) => owner === credential.owner && spec.fqn === fqn);
  if (keeper?.spec.credential.login?.hosts.includes(host) === true) return ok(undefined);
  return err(
    refusal('host_not_allowed', `no connector ${fqn} is in force that allows its access token to go to ${host}`),
  );
}
