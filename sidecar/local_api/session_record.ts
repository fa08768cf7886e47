import type { SnapshotMcpServer } from '../../shared/wire/mcp/mcp_servers.ts';
import type { AllowList } from '../../shared/model/egress.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { isRunning } from '../../machine/process_identity.ts';
import type { Session } from '../session/session.ts';
import type { LocalApiOptions } from './local_api_options.ts';

/** A session as shown by the local API: no token, no path. */
export function sessionRecord(
  session: Session,
  { policy, masked }: Pick<LocalApiOptions, 'policy' | 'masked'>,
): object {
  const { id, name, createdAt, expiresAt, openTunnels, owner, lock } = session;
  return {
    session_id: id,
    name,
    /** `ended`: everything is closed, but its container still exists. */
    state: session.ended ? 'ended' : 'live',
    created_at: new Date(createdAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    /** True if it lives as long as its owner: then `expires_at` moves on. */
    renews: session.renews,
    open_tunnels: openTunnels,
    owner_alive: owner === null ? null : isRunning(owner),
    owner: owner === null ? null : { pid: owner.pid, started: owner.started },
    plan: lock === null ? null : { name: lock.name },
    mcp_servers: mcpServerRecords(session, policy.mcpServers() ?? []),
    every_mcp_server: session.mcpServers === null,
    /** Set for the session of `svc login`. */
    ...(session.login !== null && {
      login: { id: session.login.id, state: session.login.state, who: session.login.who },
    }),
    sandbox: sandboxRecord(session),
    /** Without a container engine. */
    host_sandbox: hostSandboxRecord(session),
    /** Besides bound hosts and those of active connectors; null: every host can be reached. */
    allowed_hosts: session.allowed === null ? null : listOf(session.allowList),
    /** Over plain HTTP it reaches these; an empty list: none. */
    plain_http_hosts: listOf(session.plainHttpList),
    /** Hosts at other ports than 443 that it reaches besides; an empty list: none. */
    other_port_hosts: listOf(session.otherPortsList),
    /** The secrets that it uses where a host is bound to several, with who chose each. */
    used_secrets: (session.choice?.secrets ?? []).map(({ path, by, from }) => ({
      reference: formatVaultReference(path),
      by,
      from,
    })),
    /** What it does less with minted secrets. */
    scopes: session.scopes.map(({ path, narrowing }) => ({ reference: formatVaultReference(path), narrowing })),
    /** How many of its requests may get a credential, and with how many bytes; null: any number. */
    requests_per_minute: session.limits.requestsPerMinute ?? null,
    requests_per_day: session.limits.requestsPerDay ?? null,
    bytes_per_day: session.limits.bytesPerDay ?? null,
    /** Hosts whose replies contained their credential, and whether their binding is paused for it. */
    masked_replies: masked
      .countsOfSession(id)
      .map(({ host, maskedReplies, isPaused }) => ({ host, count: maskedReplies, paused: isPaused })),
  };
}

function listOf(list: AllowList | null): readonly string[] {
  return list === null ? [] : [...list.named, ...list.hosts];
}

/** A server that was deleted since has no name; the session keeps its id, which never refers to another server. */
function mcpServerRecords(
  { mcpServers }: Session,
  known: readonly SnapshotMcpServer[],
): readonly { readonly id: string; readonly name: string | null }[] {
  return (mcpServers ?? []).map((id) => ({
    id,
    name: known.find(({ server }) => server.id === id)?.server.name ?? null,
  }));
}

function hostSandboxRecord({ hostSandbox }: Session): object | null {
  return hostSandbox === null ? null : { mode: hostSandbox.mode, egress: hostSandbox.egress };
}

function sandboxRecord({ sandbox, containerId, unsealed }: Session): object | null {
  if (sandbox === null) return null;
  const { mode, image, imageId, runtime, detached, egress } = sandbox;
  return { mode, image, image_id: imageId, container_id: containerId, runtime, detached, egress, unsealed };
}
