import { isDeepStrictEqual } from 'node:util';
import { type InstalledConnector, operationHosts } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { PolicySource } from '../ports.ts';

/** Why the decision no longer holds; null while it does. */
export interface InForce {
  (): Refusal | null;
  /** Calls back when the answer may have changed. Returns the function to stop. */
  readonly onChanged: PolicySource['onChanged'];
}

/**
 * A request may wait after the decision: for its body, an approval, its credential or the end of its reply. The binding it
 * was decided by must still be in force then: the same binding, unchanged, at its host.
 */
export function bindingInForce(source: PolicySource, decided: Policy, host: string, binding: HostBinding): InForce {
  return createInForce(source, decided, changedMessage(host), (policy) => {
    // A new operation of the host may be this request, or may limit the binding to reads.
    if (!isDeepStrictEqual(specsAt(policy, host), specsAt(decided, host))) return false;
    const found = policy.bindingsFor(host).find(({ id }) => id === binding.id);
    return found === binding || isDeepStrictEqual(found, binding);
  });
}

/** The connectors in force that have an operation at the host. */
function specsAt({ installed }: Policy, host: string): readonly unknown[] {
  return installed
    .filter(({ spec }) => spec.operations.some((operation) => operationHosts(spec, operation).includes(host)))
    .map(({ id, spec }) => ({ id, spec }));
}

/** The same check for a connector: installed, with the same spec and the same credential. */
export function connectorInForce(
  source: PolicySource,
  decided: Policy,
  host: string,
  connector: InstalledConnector,
): InForce {
  return createInForce(source, decided, changedMessage(host), (policy) => {
    const found = policy.installed.find(({ id }) => id === connector.id);
    return found === connector || isDeepStrictEqual(found, connector);
  });
}

/** The same check for a request that is sent as it is: what could have decided otherwise about the host is unchanged. */
export function hostInForce(source: PolicySource, decided: Policy, host: string): InForce {
  const decidedBy = (policy: Policy): readonly unknown[] => [policy.bindingsFor(host), specsAt(policy, host)];
  return createInForce(source, decided, changedMessage(host), (policy) =>
    isDeepStrictEqual(decidedBy(policy), decidedBy(decided)),
  );
}

/**
 * The same check for a request whose credential may end while it waits. It is for what is still to be sent: the reply to a request
 * that was sent in time may last longer.
 */
export function untilEnd(inForce: InForce, hasEnded: (() => boolean) | null, host: string): InForce {
  if (hasEnded === null) return inForce;
  const message = `the credential of ${host} ended while this request was in progress; send it again`;
  return alsoInForce(inForce, () => (hasEnded() ? refusal('credential_unavailable', message) : null));
}

/** The same check, and then another one. */
export function alsoInForce(inForce: InForce, more: () => Refusal | null): InForce {
  return Object.assign(() => inForce() ?? more(), { onChanged: inForce.onChanged });
}

function changedMessage(host: string): string {
  return `the binding or connector of ${host} was changed or removed while this request was in progress; send it again`;
}

/** A check that `holds` for the current policy; `message` is what is told once it does not. */
export function createInForce(
  source: PolicySource,
  decided: Policy,
  message: string,
  holds: (policy: Policy) => boolean,
): InForce {
  let held = decided;
  const look = (): Refusal | null => {
    const now = source.current();
    if (!now.ok) return now.error;
    if (now.value === held) return null;
    if (holds(now.value)) {
      held = now.value;
      return null;
    }
    return refusal('credential_unavailable', message);
  };
  return Object.assign(look, { onChanged: (listener: () => void) => source.onChanged(listener) });
}
