import type { ReviewedKind } from '../shared/model/mcp_tool.ts';
import type { McpOutcome } from '../shared/model/audit_event.ts';
import type { McpHealthState, McpServer } from '../shared/model/mcp_server.ts';
import type { Result } from '../shared/model/result.ts';
import type { Secret } from '../shared/model/secret.ts';
import type { ToolDefinition } from '../shared/mcp/tools/tool_definition.ts';
import type { Clock } from '../shared/model/clock.ts';
import type { Refusal } from '../shared/model/refusal.ts';

/** The gateway's ports. One process has one instance, shared by all clients. */
export interface GatewayPorts {
  /**
   * Watches the servers that this gateway may use: reports the newest list immediately and the full list after each change.
   * Resolves when `signal` is aborted. While no list is available, `onChange` is not called and running servers keep running.
   */
  watchServers(onChange: (servers: readonly GatewayServer[]) => void, signal: AbortSignal): Promise<void>;
  /**
   * The credentials to launch a server with, requested at each launch and never stored. `consentHash` is the SHA-256 of the
   * consent text of the configuration to start (null for a remote server), so that a value is released only to a configuration
   * with consent.
   */
  release(server: McpServer, consentHash: string | null): Promise<Result<ReleasedValues, Refusal<LaunchRefusalReason>>>;
  /** Waits until a person has decided or the call is cancelled. */
  approve(call: ToolApproval): Promise<Result<null, Refusal<ApprovalRefusalReason>>>;
  /**
   * Records an event. While {@link GatewayPorts.isAccepting} is false, no call is made and no server started, but ends are still
   * recorded.
   */
  record(event: GatewayEvent): void;
  /** False if no more events can be recorded: tool calls are then refused and no server is started. */
  isAccepting(): boolean;
  /** Reports the state of all servers, on each change and at least once a minute. */
  reportHealth(states: readonly ServerHealth[]): void;
  /** Reports tools or prompts that nobody has reviewed yet. Resolves once the list of servers that {@link watchServers} reports has the outcome. */
  reportTools(server: McpServer, kind: ReviewedKind, tools: readonly ToolDefinition[]): Promise<Result<null, string>>;
  /** Whether a session of an agent has ended. False while nobody can say. */
  hasEnded(sessionId: string, signal: AbortSignal): Promise<boolean>;
  readonly clock: Clock;
}

/** A server's configuration from the control plane, with this machine's state of it. */
export interface GatewayServer {
  readonly server: McpServer;
  readonly consent: 'given' | 'needed' | 'not_needed';
  /** The vault paths that the server refers to but that have no value; such a server is not started. */
  readonly missing: readonly string[];
  /** Changes when a new value is stored for one of its references, so that the server is restarted with it. */
  readonly credentials?: string;
  /** The hashes of the tools that may be listed and called. Null if the control plane does not keep them: every tool may be. */
  readonly reviewed?: readonly string[] | null;
  /** The kinds of what `reviewed` has; every other kind may be listed. By default tools. */
  readonly reviewedKinds?: readonly string[];
  /** The only hosts that its container may reach; null or absent: its network is not closed. */
  readonly allowedHosts?: readonly string[] | null;
  /** The id of the image that its own `docker run` may start; null or absent: none. */
  readonly image?: string | null;
}

/** A session of the proxy for one run of a server. */
export interface ServerSession {
  readonly sessionId: string;
  /** As a container reaches the proxy, with the session's credentials. */
  readonly proxyUrl: string;
  /** PEM file on this machine: the system's roots and the session's CA. */
  readonly caBundlePath: string;
  /** Placeholders of the bindings of hosts that the server may reach. */
  readonly sentinels: readonly { readonly env: string; readonly value: string }[];
}

/** Where a server runs whose network is closed. */
type ServerPlace =
  /** `endpoint` is the engine's (`engine_address.ts`). */
  | { readonly kind: 'container'; readonly image: string; readonly imageId: string; readonly endpoint: string }
  /** `folder` is its name in `$SVC_HOME/sandboxes`; the proxy's socket is in it. */
  | { readonly kind: 'sandbox'; readonly folder: string };

/** The sidecar's sessions for servers with a closed network. Errors are for a person. */
export interface ServerSessions {
  /** The sidecar decides by the consent which hosts the session reaches. The session ends with this program. */
  open(server: McpServer, place: ServerPlace): Promise<Result<ServerSession, string>>;
  /** Called before the container starts, so that the sidecar finds it after a crash. */
  recordContainer(sessionId: string, containerId: string): Promise<Result<void, string>>;
  /** Opens the proxy in the network of the container whose first process this is. */
  openListener(sessionId: string, pid: number): Promise<Result<void, string>>;
  /** Ends a session, and removes its container if it has one. */
  end(sessionId: string): Promise<void>;
}

export interface ReleasedValues {
  /** The values by vault path (`mcp-servers/<id>/<NAME>`), one for each reference of the server. */
  readonly values: ReadonlyMap<string, Secret>;
  /** When the first of them ends, in milliseconds since the epoch; null if none does. It must not be used after it. */
  readonly endsAt: number | null;
  /** The access token of an authorised remote server; sent as `Authorization: Bearer`. */
  readonly bearer: BearerToken | null;
}

export interface BearerToken {
  readonly token: Secret;
  /** Expiry in milliseconds since the epoch; null if unknown. The token must not be used after it. */
  readonly expiresAt: number | null;
}

/** Why a server cannot be launched now. */
export type LaunchRefusalReason =
  | 'consent_needed'
  | 'credential_missing'
  | 'credential_unavailable'
  | 'authorisation_needed'
  | 'control_plane_unavailable';

/** A tool call that needs an approval. */
export interface ToolApproval {
  readonly server: McpServer;
  /** The server's own name for the tool. */
  readonly tool: string;
  /** SHA-256, hex, over the canonical JSON of the arguments: the same for identical calls only. */
  readonly argumentsHash: string;
  /** The summary for the person: server, tool, argument names and sizes. It contains no control characters. */
  readonly summary: string;
  /** The arguments as JSON, with the server's credentials masked, for the person; null if they cannot be masked. */
  readonly shownArguments: string | null;
  readonly sessionId: string | null;
  /** Aborted if the client disconnects or cancels the call. */
  readonly signal: AbortSignal;
}

export type ApprovalRefusalReason = 'approval_required' | 'approval_denied' | 'control_plane_unavailable';

/** An audit event. It never contains an argument's value, a result, or a reason in a server's words. */
export type GatewayEvent =
  | { readonly type: 'mcp.server.started' | 'mcp.server.stopped'; readonly server: McpServer }
  | {
      readonly type: 'mcp.server.failed' | 'mcp.server.refused';
      readonly server: McpServer;
      readonly reason: ServerFailureReason;
    }
  | {
      readonly type: 'mcp.tool.called';
      readonly server: McpServer;
      readonly tool: string;
      readonly outcome: McpOutcome;
      readonly durationMs: number;
      readonly sessionId: string | null;
    }
  | {
      readonly type: 'mcp.tool.denied';
      readonly server: McpServer;
      readonly tool: string;
      readonly reason: ToolDenial;
      readonly sessionId: string | null;
    };

/** Why a server does not run. */
const SERVER_FAILURE_REASONS = [
  'command_refused',
  'url_refused',
  'consent_needed',
  'credential_missing',
  'credential_unavailable',
  'authorisation_needed',
  'control_plane_unavailable',
  'audit_unavailable',
  'container_unavailable',
  'install_failed',
  'spawn_failed',
  'start_timeout',
  'handshake_failed',
  'unreachable',
  'exited',
  'output_limit',
] as const;
export type ServerFailureReason = (typeof SERVER_FAILURE_REASONS)[number];

/** Why a tool call is refused before it is sent. */
const TOOL_DENIALS = [
  'tool_not_allowed',
  'tool_waiting',
  'approval_required',
  'approval_denied',
  'control_plane_unavailable',
  'arguments_too_large',
  'too_many_calls',
] as const;
export type ToolDenial = (typeof TOOL_DENIALS)[number];

export interface ServerHealth {
  readonly id: string;
  readonly state: McpHealthState;
  /** For a person: the problem and the fix, with released values masked. */
  readonly lastError: string | null;
  /** Milliseconds since the epoch. */
  readonly checkedAt: number;
}
