import { isDeepStrictEqual } from 'node:util';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { PolicySource } from '../ports.ts';

/** Why the decision no longer holds; null while it does. */
export type InForce = () => Refusal | null;

/**
 * A request may wait after the decision: for its body, an approval, its credential or the end of its reply. The binding it
 * was decided by must still be in force then: the same binding, unchanged, at its host.
 */
export function bindingInForce(source: PolicySource, decided: Policy, host: string, binding: HostBinding): InForce {
  return createInForce(source, decided, host, (policy) => {
    const isGuarded = policy.connectors.guarded.has(host) && !decided.connectors.guarded.has(host);
    // A guarded host limits a binding without an effect to reads.
    if (isGuarded && binding.effect === undefined) return false;
    const found = policy.bindingsFor(host).find(({ id }) => id === binding.id);
    return found === binding || isDeepStrictEqual(found, binding);
  });
}

/** The same check for a connector: installed, with the same spec and the same credential. */
export function connectorInForce(
  source: PolicySource,
  decided: Policy,
  host: string,
  connector: InstalledConnector,
): InForce {
  return createInForce(source, decided, host, (policy) => {
    const found = policy.installed.find(({ id }) => id === connector.id);
    return found === connector || isDeepStrictEqual(found, connector);
  });
}

function createInForce(
  source: PolicySource,
  decided: Policy,
  host: string,
  holds: (policy: Policy) => boolean,
): InForce {
  return () => {
    const now = source.current();
    if (!now.ok) return now.error;
    if (now.value === decided || holds(now.value)) return null;
    const message = `the binding or connector of ${host} was changed or removed while this request was in progress; send it again`;
    return refusal('credential_unavailable', message);
  };
}
