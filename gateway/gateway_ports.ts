import type { McpOutcome } from '../shared/model/audit_event.ts';
import type { McpHealthState, McpServer } from '../shared/model/mcp_server.ts';
import type { Result } from '../shared/model/result.ts';
import type { Secret } from '../shared/model/secret.ts';
import type { Clock } from '../shared/model/clock.ts';

/** What the gateway of MCP servers needs from around it. One process has one of these, whoever its clients are. */
export interface GatewayPorts {
  /**
   * The servers that this gateway may use: the newest list at once, and the whole list again at each change. Resolves when
   * `signal` is aborted. While there is no list to be had, `onChange` is not called and what runs goes on running.
   */
  watchServers(onChange: (servers: readonly GatewayServer[]) => void, signal: AbortSignal): Promise<void>;
  /**
   * What a server is launched with. Asked for at each launch and never kept. `consentHash` is the SHA-256 of the consent
   * text of what is about to be started (null for a remote server), so that a value is released to what was consented to
   * and to nothing else.
   */
  release(server: McpServer, consentHash: string | null): Promise<Result<ReleasedValues, LaunchProblem>>;
  /** Holds until a person has decided, or the call is gone. */
  approve(call: ToolApproval): Promise<Result<null, ApprovalProblem>>;
  /** Keeps an event. No call is made and no server started while {@link GatewayPorts.accepting} is false; what ends then is told all the same. */
  record(event: GatewayEvent): void;
  /** False when nothing more can be recorded: tool calls are refused then, and no server is started. */
  accepting(): boolean;
  /** The state of every server, whenever one of them changes and at least once a minute. */
  reportHealth(states: readonly ServerHealth[]): void;
  readonly clock: Clock;
}

/** A server as the control plane has it, and what this machine knows about it. */
export interface GatewayServer {
  readonly server: McpServer;
  readonly consent: 'given' | 'needed' | 'not_needed';
  /** The vault paths that the server refers to and that hold no value; a server with one is not started. */
  readonly missing: readonly string[];
  /** Changes whenever another value is stored for one of its references, so that the server is started with it. */
  readonly credentials?: string;
}

export interface ReleasedValues {
  /** By vault path (`mcp-servers/<id>/<NAME>`), one for each reference of the server. */
  readonly values: ReadonlyMap<string, Secret>;
  /** The access token of a remote server that was signed in to; sent as `Authorization: Bearer`. */
  readonly bearer: BearerToken | null;
}

export interface BearerToken {
  readonly token: Secret;
  /** It must not be used from then on. Milliseconds since the epoch; null when it is not known. */
  readonly expiresAt: number | null;
}

/** Why a server cannot be launched now. `message` is the problem and the fix, for a person. */
export interface LaunchProblem {
  readonly reason:
    | 'consent_needed'
    | 'credential_missing'
    | 'credential_unavailable'
    | 'authorisation_needed'
    | 'control_plane_unavailable';
  readonly message: string;
}

/** One tool call that somebody has to allow. */
export interface ToolApproval {
  readonly server: McpServer;
  /** As the server names it. */
  readonly tool: string;
  /** SHA-256, hex, over the canonical JSON of the arguments: the same for identical calls only. */
  readonly argumentsHash: string;
  /** What a person is told: the server, the tool, the names and the sizes of the arguments. Nothing in it steers a terminal. */
  readonly summary: string;
  readonly sessionId: string | null;
  /** Aborted when the client has gone or has cancelled the call. */
  readonly signal: AbortSignal;
}

export interface ApprovalProblem {
  readonly reason: 'approval_required' | 'approval_denied' | 'control_plane_unavailable';
  readonly message: string;
}

/** What is audited. Never holds an argument's value, a result, or a reason that a server worded itself. */
export type GatewayEvent =
  | { readonly type: 'mcp.server.started' | 'mcp.server.stopped'; readonly server: McpServer }
  | {
      readonly type: 'mcp.server.failed' | 'mcp.server.refused';
      readonly server: McpServer;
      readonly reason: ServerProblemReason;
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
export const SERVER_PROBLEM_REASONS = [
  'command_refused',
  'url_refused',
  'consent_needed',
  'credential_missing',
  'credential_unavailable',
  'authorisation_needed',
  'control_plane_unavailable',
  'audit_unavailable',
  'container_unavailable',
  'spawn_failed',
  'start_timeout',
  'handshake_failed',
  'unreachable',
  'exited',
  'output_limit',
] as const;
export type ServerProblemReason = (typeof SERVER_PROBLEM_REASONS)[number];

/** Why a tool call is refused before the server is asked. */
export const TOOL_DENIALS = [
  'tool_not_allowed',
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
