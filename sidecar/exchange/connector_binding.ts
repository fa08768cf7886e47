import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';

/** One shared object, so that patterns compiled for a scheme can be cached by identity. */
const BEARER = { scheme: 'bearer' } as const;
const INJECT = { mechanism: 'inject' } as const;

/**
 * Writes a connector's credential onto a request as a bearer token (specification section 2, Connector spec), in place of
 * the client's own. Its id keeps the connector's upstream connections and masks apart from those of others.
 */
export function connectorBinding({ id, owner, credential }: InstalledConnector, host: string): HostBinding {
  return { id, owner, host, credential, injection: BEARER, emit: INJECT, allowedHosts: [], body: 'buffer' };
}
