import { isDeepStrictEqual } from 'node:util';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { PolicySource } from '../ports.ts';

/** Why what was decided no longer holds; null while it does. */
export type InForce = () => Refusal | null;

/**
 * A request may wait between the decision about it and its use: for its body, for a person's approval, for its credential or
 * for the end of its reply. What it was decided by has to be in force then too: the same binding, unchanged, at its host.
 */
export function bindingInForce(source: PolicySource, decided: Policy, host: string, binding: HostBinding): InForce {
  return inForce(source, decided, host, (policy) => {
    const isGuarded = policy.connectors.guarded.has(host) && !decided.connectors.guarded.has(host);
    // From then on a binding without an effect only reads there.
    if (isGuarded && binding.effect === undefined) return false;
    const found = policy.bindingsFor(host).find(({ id }) => id === binding.id);
    return found === binding || isDeepStrictEqual(found, binding);
  });
}

/** The same of a connector: installed, with the same spec and the same credential. */
export function connectorInForce(
  source: PolicySource,
  decided: Policy,
  host: string,
  connector: InstalledConnector,
): InForce {
  return inForce(source, decided, host, (policy) => {
    const found = policy.installed.find(({ id }) => id === connector.id);
    return found === connector || isDeepStrictEqual(found, connector);
  });
}

function inForce(source: PolicySource, decided: Policy, host: string, holds: (policy: Policy) => boolean): InForce {
  return () => {
    const now = source.current();
    if (!now.ok) return now.error;
    if (now.value === decided || holds(now.value)) return null;
    const message = `what ${host} is bound by was changed or removed while this request was under way; send it again`;
    return refusal('credential_unavailable', message);
  };
}
