import { SELF_TEST_HOST } from '../../shared/model/egress.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { allowsHost, isConnectorHost, parseAllowedHost, policyAdmitsHost } from '../../shared/resolve/admitted_host.ts';
import { HTTPS_PORT, PLAIN_PORT, portOfHost } from '../../shared/net/host_port.ts';
import type { PlainTarget } from '../../shared/net/plain_target.ts';
import { isNamedByBinding } from '../../shared/resolve/resolve.ts';
import type { CredentialSource, LiveSession, PolicySource, ServedServer } from '../ports.ts';

/** What decides a session's reach. */
interface ReachPorts {
  readonly policy: PolicySource;
  readonly credentials: Pick<CredentialSource, 'isStored'>;
}

/**
 * Whether a tunnel to the host may be opened. A step scope reaches only the hosts in its lock. A session with allowed hosts
 * reaches only these, bound hosts and hosts of active connectors (decision 0062); without a policy, only the allowed ones.
 * Every session reaches another port than 443 only at such a host, with that port (decision 0077).
 * The container of an MCP server reaches only its allowed hosts: a binding is for the person's agents, not for every server.
 * A self-test reaches nothing, so its probes, which are not recorded, hide nothing.
 */
export function checkReach(session: LiveSession, host: string, ports: ReachPorts): Result<void, Refusal> {
  const { reach, selfTest = false, mcpServer = null } = session;
  if (selfTest && host !== SELF_TEST_HOST) {
    return err(refusal('egress_host_not_allowed', `this session of svc doctor reaches only ${SELF_TEST_HOST}`));
  }
  if (selfTest) return ok(undefined);
  if (reach !== undefined) return reach.includes(host) ? ok(undefined) : err(notInLock(reach.stepId, host));
  if (listAllows(session, host)) return ok(undefined);
  if (mcpServer !== null) return err(refusal('egress_host_not_allowed', describeServerRefusal(mcpServer, host)));
  const policy = ports.policy.current();
  if (!policy.ok) return policy;
  if (policyAdmitsHost(policy.value, (ref) => ports.credentials.isStored(ref), host)) return ok(undefined);
  return err(notReached(host));
}

/** Whether the session's own lists allow the host. Without a list, a session reaches every host on port 443. */
function listAllows({ allowed = null, otherPorts = null }: LiveSession, host: string): boolean {
  if (portOfHost(host) === HTTPS_PORT) return allowed === null || allowsHost(allowed, host);
  return [allowed, otherPorts].some((list) => list !== null && allowsHost(list, host));
}

/**
 * Whether the session may send plain requests to the target. Nothing but its own list of hosts for plain HTTP allows them: a
 * host that it may reach over TLS is not on it. A step of a plan has no such list.
 */
export function checkPlainHttp(
  { reach, plainHttp = null, selfTest }: LiveSession,
  target: PlainTarget,
): Result<void, Refusal> {
  const { host, port } = target;
  if (reach !== undefined || selfTest === true || plainHttp === null || !allowsHost(plainHttp.allowed, host)) {
    const way =
      parseAllowedHost(host).ok && reach === undefined
        ? `; the person who runs svc can allow it: --plain-http ${host} for a new session, or svc allow --plain-http ${host} for all that start in the folder`
        : '';
    const message = `plain http to ${host} is not allowed for this session: use https://${way}`;
    return err(refusal('non_connect_proxy_request', message));
  }
  if (port === PLAIN_PORT) return ok(undefined);
  return err(
    refusal('connect_port_not_allowed', `port ${port} is not allowed: plain http goes to port ${PLAIN_PORT} only`),
  );
}

/** As {@link isPublicOnly}, for plain HTTP: no binding and no connector can name a host there. */
export function isPlainPublicOnly({ sealed, plainHttp }: LiveSession, host: string): boolean {
  return sealed === true && plainHttp?.named.has(host) !== true;
}

function describeServerRefusal({ name }: ServedServer, host: string): string {
  const way = parseAllowedHost(host).ok ? `; the person who runs svc can allow it: svc mcp allow ${name} ${host}` : '';
  return `${host} is not allowed for the MCP server ${name}${way}`;
}

function notInLock(stepId: string, host: string): Refusal {
  const message = `${host} is not among the hosts that the lock seals for step ${stepId}; add it to the plan and freeze the plan again`;
  return refusal(portOfHost(host) === HTTPS_PORT ? 'step_scope_host_denied' : 'connect_port_not_allowed', message);
}

function notReached(host: string): Refusal {
  const port = portOfHost(host);
  const canBeAllowed = parseAllowedHost(host).ok;
  if (port === HTTPS_PORT) {
    const way = canBeAllowed ? `; the person who runs svc can allow it for the next one: svc allow ${host}` : '';
    return refusal('egress_host_not_allowed', `${host} is neither bound nor allowed for this session${way}`);
  }
  const way = canBeAllowed
    ? `; the person who runs svc can allow it: --allow ${host} for a new session, or svc allow ${host} for all that start in the folder`
    : '';
  const message = `port ${port} is not allowed: only ${HTTPS_PORT} is, and hosts that a binding, a connector or the session names with their port${way}`;
  return refusal('connect_port_not_allowed', message);
}

/** Calls `close` when the session may no longer reach the host, also if that is so already. Returns the function to stop. */
export function watchReach(session: LiveSession, host: string, ports: ReachPorts, close: () => void): () => void {
  if (!isLimited(session) && portOfHost(host) === HTTPS_PORT) return () => undefined;
  const look = (): void => {
    if (!checkReach(session, host, ports).ok) close();
  };
  const stop = ports.policy.onChanged(look);
  look();
  return stop;
}

/** Whether the session, or the step, may reach only some hosts. */
export function isLimited({ reach, allowed }: LiveSession): boolean {
  return reach !== undefined || (allowed ?? null) !== null;
}

/**
 * Whether connections for a host may go only to public addresses that are not this machine's own (decision 0046). True in a
 * sealed session unless a binding, a connector with its credential or a setting names the host, or the person who started the session did: its
 * container has no network of its own, and must not reach the machine's network through a name that resolves there. A step
 * scope opens tunnels only to hosts in its lock anyway.
 */
export function isPublicOnly({ sealed, reach, named }: LiveSession, host: string, ports: ReachPorts): boolean {
  if (sealed !== true || reach !== undefined || named?.has(host) === true) return false;
  const policy = ports.policy.current();
  if (!policy.ok) return true;
  const isConnectors = isConnectorHost(policy.value, (ref) => ports.credentials.isStored(ref), host);
  return !isConnectors && !isNamedByBinding(policy.value, host);
}
