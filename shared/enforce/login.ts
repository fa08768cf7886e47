import { connectorOfVaultPath, type InstalledConnector } from '../model/connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isAtOrBelow } from '../net/http/plain_path.ts';

/**
 * Checks a request that would get the credential of a connector: now, as when its binding was made, that must be the login of a
 * program, and name this host. The connector may have been replaced since. The path must be one that the login names, because
 * a host may also have endpoints that give out lasting credentials for an access token. Refuses with `host_not_allowed`.
 */
export function enforceLogin(
  { credential }: HostBinding,
  installed: readonly InstalledConnector[],
  { host, path }: { readonly host: string; readonly path: string },
): Result<void, Refusal> {
  const fqn = connectorOfVaultPath(credential.path);
  if (fqn === null) return ok(undefined);
  const keeper = installed.find(({ owner, spec }) => owner === credential.owner && spec.fqn === fqn);
  const login = keeper?.spec.credential.login;
  if (login?.hosts.includes(host) === true) {
    if (isAtOrBelow(path, login.paths)) return ok(undefined);
    const message = `the connector ${fqn} does not allow its access token at this path of ${host}, only at ${login.paths.join(', ') || 'none'}`;
    return err(refusal('host_not_allowed', message));
  }
  return err(
    refusal('host_not_allowed', `no connector ${fqn} is in force that allows its access token to go to ${host}`),
  );
}
