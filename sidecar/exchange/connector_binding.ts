import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';

/** One object for all, by which what was made for a scheme is known again. */
const BEARER = { scheme: 'bearer' } as const;
const INJECT = { mechanism: 'inject' } as const;

/**
 * How a connector's credential is written onto a request: as a bearer token (specification section 2, Connector spec), in
 * place of whatever the client sent there. Its id keeps the connector's upstream connections and masks apart from others'.
 */
export function connectorBinding({ id, owner, credential }: InstalledConnector, host: string): HostBinding {
  return { id, owner, host, credential, injection: BEARER, emit: INJECT, allowedHosts: [], body: 'buffer' };
}
