import { z } from 'zod';
import { AUDIT_EVENT_TYPES, MCP_OUTCOMES } from '../../model/audit_event.ts';
import { ENGINE_ENDPOINT } from '../../model/settings.ts';
import { MAX_MCP_SERVER_HOSTS, MCP_HEALTH_STATES } from '../../model/mcp_server.ts';
import { hostPatternText } from '../host_binding_fields.ts';
import type { SnapshotMcpServer, SnapshotMcpServerRecord } from './mcp_servers.ts';
import { seenKind, seenTools, toolHash } from './mcp_tools.ts';
import { MOST_SHOWN_BYTES } from '../approval_views.ts';
import { id, imageId, line, time } from '../primitives.ts';

/** The calls between the sidecar, its gateways and the CLI, all programs of the same user on this machine. */

export const MAX_LIST_WAIT_SECONDS = 25;
const MAX_SERVERS = 1_000;
const MAX_EVENTS = 200;
const MAX_LOG_LINES = 500;
const MAX_LOG_LINE_CHARACTERS = 4_000;
const MAX_ERROR_CHARACTERS = 2_000;

const hash = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 in lower-case hex');
const serverName = z.string().max(64);
const toolName = z.string().min(1).max(1_024);
const sessionId = id('ses').nullable();

/** `GET /v1/mcp/servers`: with `wait`, a list whose `version` the caller has is answered only once it has changed. */
export const serversQuery = z.strictObject({
  wait: z.coerce.number().int().min(0).max(MAX_LIST_WAIT_SECONDS).default(0),
  version: z.string().max(64).optional(),
  /** Waits for a configuration that was just written. */
  min_policy_version: z.coerce.number().int().min(0).optional(),
});

const serverHosts = z.array(hostPatternText).max(MAX_MCP_SERVER_HOSTS);

const consentRecord = z.object({ hash, text: z.string(), consented_at: z.string() });

/** A server with this machine's state. `server` is read with `readSnapshotMcpServers`, as in a snapshot. */
const listedServer = z.object({
  server: z.unknown(),
  consent: z.enum(['given', 'needed', 'not_needed']),
  consent_hash: hash.nullable(),
  last_consent: consentRecord.nullable(),
  missing: z.array(z.string()),
  /** Changes when a new value is stored for one of its references. */
  credentials: z.string(),
  /** The hashes of the tools that may be listed and called; null: all, because the control plane does not keep them. */
  reviewed: z.array(toolHash).nullable().default(null),
  /** The kinds of what is in `reviewed`. Every other kind may be listed. */
  reviewed_kinds: z.array(z.string()).default(['tool']),
  /** The only hosts that its container reaches; null if its network is not closed (decision 0080). */
  allowed_hosts: z.array(z.string()).nullable().default(null),
  /** The id of the image of its own `docker run` that was last consented to; null if there is none (decision 0097). */
  image: z.string().nullable().default(null),
  /** Hosts that its container was refused, newest first. The server chose them. */
  refused_hosts: z.array(z.string()).default([]),
  /** The gateways' report, or what is known without one. */
  health: z.object({
    state: z.enum(MCP_HEALTH_STATES),
    last_error: z.string().nullable(),
    checked_at: time,
    restarts: z.number().nullable(),
    tools: z.number().nullable(),
    gateways: z.number(),
  }),
});
export type ListedServer = z.output<typeof listedServer>;

export const serversReply = z.object({
  /** Changes with everything that a gateway has to act on; health does not count. */
  version: z.string(),
  items: z.array(listedServer),
  problems: z.array(z.object({ id: z.string().nullable(), message: z.string() })),
});
export type ServersReply = z.output<typeof serversReply>;

/** `POST /v1/mcp/servers/{id}/release`: the configuration about to be started, by its hash, or the URL that the values will be sent to. */
export const releaseInput = z.strictObject({ consent_hash: hash.nullable(), url: z.string().nullable() });
export type ReleaseInput = z.output<typeof releaseInput>;
export const releaseReply = z.object({
  values: z.record(z.string(), z.string()),
  /** When the first of the values ends, in milliseconds since the epoch; null or absent: none does. */
  ends_at: z.number().nullable().optional(),
  bearer: z.object({ token: z.string(), expires_at: z.number().nullable() }).nullable(),
});

/** `POST /v1/mcp/servers/{id}/consent`. `min_policy_version`: waits for a configuration that was just written. */
export const consentInput = z.strictObject({
  consent_hash: hash,
  /** The person was told that it runs unchecked code, and agreed. */
  unchecked: z.boolean().default(false),
  min_policy_version: z.number().int().min(0).optional(),
  /**
   * The only hosts that its container may reach; null: its network is not closed. Without it, a server that had a consent in
   * the same isolation keeps what it had, and any other reaches no host.
   */
  allowed_hosts: serverHosts.nullable().optional(),
  /** The id of the image that the person was shown, for a server whose command is a `docker run`. */
  image: imageId.optional(),
});
export type ConsentInput = z.output<typeof consentInput>;

/** `POST /v1/mcp/servers/{id}/hosts`: replaces the hosts that its container may reach. */
export const serverHostsInput = z.strictObject({ allowed_hosts: serverHosts });
export type ServerHostsInput = z.output<typeof serverHostsInput>;

/** `GET /v1/mcp/isolation`: whether the network of a container at this engine can be closed. */
export const isolationQuery = z.strictObject({
  endpoint: z.string().max(512).regex(ENGINE_ENDPOINT, 'is no engine on this machine (unix:///... or podman:/...)'),
});
export const isolationReply = z.object({
  sealed: z.boolean(),
  /** Why not, for a person. */
  message: z.string().nullable(),
  /** The image that the engine needs if the server's own has no Node; null if any image will do. */
  node_image: z.string().nullable().default(null),
});

/** `POST /v1/mcp/approvals`. */
export const approvalInput = z.strictObject({
  server_id: id('mcp'),
  tool: toolName,
  arguments_hash: hash,
  summary: line(500).min(1),
  session_id: sessionId,
  /** The arguments as JSON, with the server's credentials masked, for the person who decides; at most 64 KiB of them. */
  arguments: z.object({ text: z.string().max(MOST_SHOWN_BYTES), bytes: z.number().int().min(0) }).optional(),
});
export type ApprovalInput = z.output<typeof approvalInput>;

/** `POST /v1/mcp/tools`: tools of a server that `reviewed` does not have. Once it is answered, the list has the newest hashes. */
export const toolsInput = z.strictObject({ server_id: id('mcp'), kind: seenKind, tools: seenTools });
export type ToolsInput = z.output<typeof toolsInput>;

const MCP_EVENT_TYPES = AUDIT_EVENT_TYPES.filter((type): type is McpEventType => type.startsWith('mcp.'));
type McpEventType = Extract<(typeof AUDIT_EVENT_TYPES)[number], `mcp.${string}`>;

const gatewayEvent = z.strictObject({
  /** Numbers the events of one gateway, so that resending one is harmless. */
  number: z.number().int().min(1),
  type: z.enum(MCP_EVENT_TYPES),
  server_id: id('mcp'),
  server: serverName,
  registry_id: z.string().max(512).nullable(),
  version: z.string().max(255).nullable(),
  /** The server runs unchecked code. */
  unchecked: z.boolean().optional(),
  session_id: sessionId,
  tool: toolName.optional(),
  outcome: z.enum(MCP_OUTCOMES).optional(),
  duration_ms: z.number().min(0).optional(),
  /** One of the gateway's own reason codes, never a server's text. */
  reason: z
    .string()
    .regex(/^[a-z_]{1,64}$/)
    .optional(),
});
export type GatewayEventRecord = z.output<typeof gatewayEvent>;

/** A gateway: one process, for one client over stdio or behind the sidecar. */
const gatewayIdentity = z.strictObject({
  id: z.string().regex(/^[\w-]{16,64}$/),
  kind: z.enum(['stdio', 'socket']),
  pid: z.number().int().min(1),
});
export type GatewayIdentity = z.output<typeof gatewayIdentity>;

/** `POST /v1/mcp/events`. */
export const eventsInput = z.strictObject({
  gateway: gatewayIdentity,
  events: z.array(gatewayEvent).min(1).max(MAX_EVENTS),
});
export type EventsInput = z.output<typeof eventsInput>;
/** `accepting`: false if the audit log is full, so that no more calls may be made. */
export const eventsReply = z.object({ accepting: z.boolean() });

/** A gateway's report on one server; `log` is the last stderr output of its program, with released values masked. */
const reportedServer = z.strictObject({
  id: id('mcp'),
  state: z.enum(MCP_HEALTH_STATES),
  last_error: z
    .string()
    .nullable()
    .overwrite((text) => text?.slice(0, MAX_ERROR_CHARACTERS) ?? null),
  checked_at: time,
  restarts: z.number().int().min(0).nullable(),
  tools: z.number().int().min(0).nullable(),
  /** Null: unchanged since the last report. */
  log: z.array(z.string().max(MAX_LOG_LINE_CHARACTERS)).max(MAX_LOG_LINES).nullable(),
});
export type ReportedServer = z.output<typeof reportedServer>;

/** `POST /v1/mcp/health`: the state of every server of one gateway; `ended`: the gateway and its servers are about to end. */
export const healthInput = z.strictObject({
  gateway: gatewayIdentity,
  ended: z.boolean().default(false),
  servers: z.array(reportedServer).max(MAX_SERVERS),
});
export type HealthInput = z.output<typeof healthInput>;

/** `GET /v1/mcp/gateway`: what a gateway needs at its start. */
export const gatewayFacts = z.object({
  /** The control plane is on this machine, so servers on its loopback are allowed. */
  is_local: z.boolean(),
  /** PEM roots trusted for remote servers, besides the system's. */
  extra_roots: z.array(z.string()),
  /** The variables that set the upstream proxy, with its password. Only the user of this machine is told. */
  upstream_proxy: z.record(z.string(), z.string()).default({}),
});
export type GatewayFacts = z.output<typeof gatewayFacts>;

/** `GET /v1/mcp/logs/{id}`: one per gateway that runs or ran the server. */
export const logsReply = z.object({
  items: z.array(z.object({ gateway: gatewayIdentity, lines: z.array(z.string()) })),
});

/** The record of a server in a snapshot. */
export function snapshotRecord({ server, authorization }: SnapshotMcpServer): SnapshotMcpServerRecord {
  const { registryId, id: serverId, tools, command, ruleProblem, ...rest } = server;
  const toolLists = { allow: tools.allow && [...tools.allow], deny: [...tools.deny], approval: [...tools.approval] };
  const lists = { command: [...command], tools: toolLists, env: { ...server.env }, headers: { ...server.headers } };
  const rule = ruleProblem !== undefined && { rule_problem: ruleProblem };
  return { ...rest, ...lists, id: serverId, registry_id: registryId, authorization, ...rule };
}
