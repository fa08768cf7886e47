import { type Refusal, refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { ExchangeTunnel } from './exchange_ports.ts';

/**
 * Checks that no credential is for the host of a plain request, whatever the session allows: over plain HTTP everyone on the
 * way could read the credential, or answer in the host's place. What this lets through can only be passthrough.
 */
export function checkPlainHost(
  policy: Policy,
  { host, login }: Pick<ExchangeTunnel, 'host' | 'login'>,
): Result<void, Refusal> {
  const isBound = policy.bindingsFor(host).length > 0 || policy.connectors.hosts.has(host);
  const isOfLogin = login?.host === host || login?.account?.host === host;
  if (!isBound && !isOfLogin && policy.certificateFor(host) === null) return ok(undefined);
  const message = `${host} has a credential, which never goes over plain http: use https://${host}`;
  return err(refusal('plain_http_bound_host', message));
}
