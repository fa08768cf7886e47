import type { CredentialRef, Owner } from './host_binding.ts';

/** `local`: a program on the user's machine. `remote`: a server reached over HTTP. */
export const MCP_MODES = ['local', 'remote'] as const;
export type McpMode = (typeof MCP_MODES)[number];

/** The transport of a remote server. */
export const MCP_TRANSPORTS = ['streamable-http', 'sse'] as const;
export type McpTransport = (typeof MCP_TRANSPORTS)[number];

/** The specification's `status`, which no process changes: it stays `stopped` (section 3). `health` tells what runs. */
export const MCP_STATUSES = ['stopped', 'running', 'error'] as const;

/** `container`: in a container, or where a machine has no engine in a sandbox of bubblewrap; else it is not started. */
export const MCP_ISOLATIONS = ['process', 'container'] as const;
type McpIsolation = (typeof MCP_ISOLATIONS)[number];

/** The number of hosts that a server's container may reach. */
export const MAX_MCP_SERVER_HOSTS = 200;

/** How many hosts that a server's container was refused are remembered. */
export const MAX_REFUSED_HOSTS = 50;

/** A gateway's report on a server of its machine. */
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
 * The OAuth 2.0 authorisation of a remote server. `authorisation_required`: started but not finished.
 * `reauthorisation_required`: the provider withdrew it.
 */
export const MCP_AUTHORIZATION_STATES = ['authorisation_required', 'ready', 'reauthorisation_required'] as const;
export type McpAuthorizationState = (typeof MCP_AUTHORIZATION_STATES)[number];

/** The tools of a server that may be called, by the server's own names, without the gateway's prefix. */
export interface McpToolPolicy {
  /** Null: every tool. A `*` at the end of a name matches any rest. */
  readonly allow: readonly string[] | null;
  /** Beats `allow`. */
  readonly deny: readonly string[];
  /** Calls of these tools are held for a person; `*`: all. */
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
  /** The program and its arguments, never a shell line; empty for a remote server. */
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
  /** Why a rule of the enterprise does not let it run. The server is disabled then. */
  readonly ruleProblem?: string;
}

/** The name of a server. */
export const MCP_SERVER_NAME = /^[a-z0-9][a-z0-9-]{0,47}$/;
/** The name of a credential; the prefix `SVC_` is reserved. */
export const MCP_CREDENTIAL_NAME = /^(?!SVC_)[A-Za-z_][A-Za-z0-9_]{0,127}$/i;

/** The first segment of these credentials' vault paths, reserved for them. */
export const MCP_VAULT_PREFIX = 'mcp-servers';
/** The last segment of the path under which a remote server's access token is released. */
export const MCP_OAUTH_NAME = 'SVC_OAUTH';

/** The vault path of a server's credential: `mcp-servers/{id}/{env_var_name}`. */
export function mcpVaultPath(serverId: string, credentialName: string): string {
  return `${MCP_VAULT_PREFIX}/${serverId}/${credentialName}`;
}

/** The server and the name of the credential at a vault path; null for a path that is none of a server's credential. */
export function mcpCredentialAt(path: string): { readonly serverId: string; readonly name: string } | null {
  const [prefix, serverId = '', name, ...more] = path.split('/');
  return prefix === MCP_VAULT_PREFIX && name !== undefined && more.length === 0 ? { serverId, name } : null;
}

/** The server whose access token is at a vault path; null for every other path. */
export function mcpServerOfToken(path: string): string | null {
  const credential = mcpCredentialAt(path);
  return credential?.name === MCP_OAUTH_NAME ? credential.serverId : null;
}

/** The reference of a remote server's access token, in its owner's namespace. */
export function mcpOAuthRef(server: Pick<McpServer, 'id' | 'owner'>): CredentialRef {
  return { owner: server.owner, path: mcpVaultPath(server.id, MCP_OAUTH_NAME) };
}

/** What the line of risk of a registry entry can say. */
export const ENTRY_RISK_CODES = [
  'not_installable',
  'runs_code',
  'runs_container',
  'remote',
  'secrets',
  'optional_secrets',
  'unpinned_image',
  'deprecated',
  'new',
] as const;
export type EntryRiskCode = (typeof ENTRY_RISK_CODES)[number];
