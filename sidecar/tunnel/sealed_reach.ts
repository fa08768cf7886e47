import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { namesHost } from '../../shared/resolve/resolve.ts';
import type { LiveSession, PolicySource } from '../ports.ts';

/** Whether a tunnel to the host may be opened: a step scope reaches only the hosts in its lock. */
export function checkReach({ reach }: LiveSession, host: string): Result<void, Refusal> {
  if (reach === undefined || reach.includes(host)) return ok(undefined);
  const message = `${host} is not among the hosts that the lock seals for step ${reach.stepId}; add it to the plan and freeze the plan again`;
  return err(refusal('step_scope_host_denied', message));
}

/**
 * Whether connections for a host may go only to public addresses that are not this machine's own (decision 0046). True in a
 * sealed session unless a binding, connector or setting names the host: its container has no network of its own, and must
 * not reach the machine's network through a name that resolves there. A step scope opens tunnels only to hosts in its lock
 * anyway.
 */
export function isPublicOnly({ sealed, reach }: LiveSession, host: string, policies: PolicySource): boolean {
  if (sealed !== true || reach !== undefined) return false;
  const policy = policies.current();
  return !policy.ok || !namesHost(policy.value, host);
}
