import type { CredentialRef, Owner } from './host_binding.ts';

/** `local`: a program on the machine that uses it. `remote`: a server that is reached over HTTP. */
export const MCP_MODES = ['local', 'remote'] as const;
export type McpMode = (typeof MCP_MODES)[number];

/** How a remote server is spoken to. */
export const MCP_TRANSPORTS = ['streamable-http', 'sse'] as const;
export type McpTransport = (typeof MCP_TRANSPORTS)[number];

/** The specification's `status`, which no process drives: it is `stopped` (section 3). What runs is said by `health`. */
export const MCP_STATUSES = ['stopped', 'running', 'error'] as const;
export type McpStatus = (typeof MCP_STATUSES)[number];

/** `container`: in the runtime's container, where Docker is there. */
export const MCP_ISOLATIONS = ['process', 'container'] as const;
export type McpIsolation = (typeof MCP_ISOLATIONS)[number];

/** What a gateway knows of a server on its machine. */
export const MCP_HEALTH_STATES = [
  'unknown',
  'disabled',
  'needs_consent',
  'needs_credentials',
  'needs_authorisation',
  'starting',
  'running',
  'stopped',
  'failed',
] as const;
export type McpHealthState = (typeof MCP_HEALTH_STATES)[number];

/**
 * The OAuth 2.0 authorisation of a remote server. `authorisation_required`: it was begun, and nobody has finished it.
 * `reauthorisation_required`: the provider took it back.
 */
export const MCP_AUTHORIZATION_STATES = ['authorisation_required', 'ready', 'reauthorisation_required'] as const;
export type McpAuthorizationState = (typeof MCP_AUTHORIZATION_STATES)[number];

/** Which of a server's tools may be called. The names are the server's own, without the gateway's prefix. */
export interface McpToolPolicy {
  /** Null: every tool. A `*` at the end of a name stands for any rest. */
  readonly allow: readonly string[] | null;
  /** Wins over `allow`. */
  readonly deny: readonly string[];
  /** Calls of these are held for a person; `*`: all. */
  readonly approval: readonly string[];
}

/** An MCP server configuration, validated (specification section 2). */
export interface McpServer {
  /** `mcp_…` */
  readonly id: string;
  readonly owner: Owner;
  /** Unique among the owner's servers, and the prefix of its tools. */
  readonly name: string;
  readonly description: string;
  readonly mode: McpMode;
  readonly version: string | null;
  /** The name of the registry entry that it was installed from. */
  readonly registryId: string | null;
  /** The program and its arguments, never a shell's line; empty for a remote server. */
  readonly command: readonly string[];
  /** Of a local server. */
  readonly env: Readonly<Record<string, string>>;
  /** Of a remote server. */
  readonly url: string | null;
  readonly transport: McpTransport | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly tools: McpToolPolicy;
  readonly enabled: boolean;
  readonly isolation: McpIsolation;
  /** Grows with each change. */
  readonly revision: number;
}

/** The name of a server. */
export const MCP_SERVER_NAME = /^[a-z0-9][a-z0-9-]{0,47}$/;
/** The name of a credential; what begins with `SVC_` is the service's own. */
export const MCP_CREDENTIAL_NAME = /^(?!SVC_)[A-Za-z_][A-Za-z0-9_]{0,127}$/i;

/** The vault's first segment of these credentials; it is reserved for them. */
export const MCP_VAULT_PREFIX = 'mcp-servers';
/** The last segment of the path that a remote server's access token is released under. */
export const MCP_OAUTH_NAME = 'SVC_OAUTH';

/** The vault path of a server's credential: `mcp-servers/{id}/{env_var_name}`. */
export function mcpVaultPath(serverId: string, credentialName: string): string {
  return `${MCP_VAULT_PREFIX}/${serverId}/${credentialName}`;
}

/** The server whose access token lies at a vault path; null for every other path. */
export function mcpServerOfToken(path: string): string | null {
  const [prefix, serverId = '', name, ...more] = path.split('/');
  return prefix === MCP_VAULT_PREFIX && name === MCP_OAUTH_NAME && more.length === 0 ? serverId : null;
}

/** The reference of a remote server's access token, in its owner's namespace. */
export function mcpOAuthRef(server: Pick<McpServer, 'id' | 'owner'>): CredentialRef {
  return { owner: server.owner, path: mcpVaultPath(server.id, MCP_OAUTH_NAME) };
}
