import { z } from 'zod';
import { OWNERS } from '../../model/host_binding.ts';
import {
  MAX_REFUSED_HOSTS,
  MCP_AUTHORIZATION_STATES,
  MCP_HEALTH_STATES,
  MCP_ISOLATIONS,
  MCP_MODES,
  MCP_STATUSES,
  MCP_TRANSPORTS,
  type McpAuthorizationState,
  type McpServer,
} from '../../model/mcp_server.ts';
import { oneOfValues } from '../host_binding_fields.ts';
import { describeUnknownFields } from '../host_binding_rules.ts';
import {
  mcpCommand,
  mcpCredentialName,
  mcpDescriptionText,
  mcpEnv,
  mcpHeaders,
  mcpNameText,
  mcpRegistryIdText,
  mcpTools,
  mcpToolsInForce,
  mcpUrlText,
  mcpVersionText,
} from './mcp_server_fields.ts';
import { withOwnId } from './mcp_references.ts';
import { checkMcpServer } from './mcp_server_rules.ts';
import { toShownLine } from '../../model/shown_text.ts';
import { normaliseHostOnPort } from '../../net/host.ts';
import { ifMatchHeaders } from '../../net/http/if_match.ts';
import { id, owner, page, pageQuery, time } from '../primitives.ts';
import { secretValue } from '../secrets.ts';

/** Every field of a server that a person writes. A reference in them may use `{id}` for the server's own id. */
const fields = {
  owner: oneOfValues(OWNERS).default('personal'),
  name: mcpNameText,
  description: mcpDescriptionText.default(''),
  mode: oneOfValues(MCP_MODES).default('local'),
  version: mcpVersionText.nullable().default(null),
  /** Absent in a PUT: unchanged. */
  registry_id: mcpRegistryIdText.nullable().optional(),
  command: mcpCommand.default([]),
  env: mcpEnv.default({}),
  url: mcpUrlText.nullable().default(null),
  /** For a remote server; by default `streamable-http`. */
  transport: oneOfValues(MCP_TRANSPORTS).nullable().default(null),
  headers: mcpHeaders.default({}),
  tools: mcpTools,
  enabled: z.boolean().default(true),
  isolation: oneOfValues(MCP_ISOLATIONS).default('process'),
};

/** The names of those fields. */
export const MCP_SERVER_FIELDS: readonly string[] = Object.keys(fields);

/** The messages for the object itself: what it must be, and its unknown fields. */
function serverError(issue: { readonly code?: string | undefined; readonly keys?: unknown }): string {
  if (issue.code !== 'unrecognized_keys') return 'must be an MCP server, an object';
  const keys = Array.isArray(issue.keys) ? issue.keys.map(String) : [];
  const readOnly = keys.filter((key) => Object.hasOwn(mcpServerRecord.shape, key));
  if (readOnly.length === 0) return describeUnknownFields(keys, MCP_SERVER_FIELDS);
  return readOnly.length === keys.length ? 'is read-only: leave it out' : 'is read-only or unknown: leave it out';
}

/** `POST /v1/mcp-servers`. */
export const mcpServerInput = z
  .strictObject(fields, { error: serverError })
  .superRefine(checkMcpServer, { when: () => true })
  .meta({ id: 'McpServerInput' });
/** `PUT /v1/mcp-servers/{id}`: with the `revision` that was read, only if it is still the current one. */
export const mcpServerReplacement = z
  .strictObject({ ...fields, revision: z.number().int().min(1).optional() }, { error: serverError })
  .superRefine(checkMcpServer, { when: () => true })
  .meta({ id: 'McpServerReplacement' });
/** The headers of `PUT /v1/mcp-servers/{id}`. */
export const mcpServerHeaders = ifMatchHeaders(
  z
    .string()
    .regex(/^[1-9]\d{0,14}$/)
    .transform(Number),
  '3',
);
/** The input of a caller. */
export type McpServerInput = z.input<typeof mcpServerInput>;
/** The validated form. */
export type ValidMcpServer = z.output<typeof mcpServerInput>;

/** The fields of a server as stored and shown. */
const shown = {
  ...fields,
  id: id('mcp'),
  owner: oneOfValues(OWNERS),
  description: mcpDescriptionText,
  mode: oneOfValues(MCP_MODES),
  version: mcpVersionText.nullable(),
  registry_id: mcpRegistryIdText.nullable(),
  command: mcpCommand,
  env: mcpEnv,
  url: mcpUrlText.nullable(),
  transport: oneOfValues(MCP_TRANSPORTS).nullable(),
  headers: mcpHeaders,
  enabled: z.boolean(),
  isolation: oneOfValues(MCP_ISOLATIONS),
  revision: z.number().int().min(1),
};

/** The last report of a gateway on one of the owner's machines; the newest of all. */
const health = z.object({
  state: z.enum(MCP_HEALTH_STATES),
  last_error: z.string().nullable(),
  checked_at: time,
  /** Hosts that its container was refused on any of these machines. The server chose their names. */
  refused_hosts: z.array(z.string()).default([]),
});

const credential = z.object({
  name: z.string(),
  /** Whether the configuration refers to it. */
  required: z.boolean(),
  set: z.boolean(),
  updated_at: time.nullable(),
});

const authorizationState = z.enum(MCP_AUTHORIZATION_STATES);

/** The OAuth 2.0 authorisation of a remote server that requires one. */
const authorization = z.object({
  state: authorizationState,
  /** When the access token expires; it is refreshed before. */
  expires_at: time.nullable(),
  scopes: z.array(z.string()),
});

/** A server as shown by the API: never a secret's value. */
export const mcpServerRecord = z
  .object({
    ...shown,
    /** Always `stopped`: no process changes it. See `health`. */
    status: z.enum(MCP_STATUSES),
    health: health.nullable(),
    credentials: z.array(credential),
    authorization: authorization.nullable(),
    /** Why a rule of the enterprise does not let it run, whatever `enabled` says; null if it may. */
    rule_problem: z.string().nullable().default(null),
    /** Warnings about the command for a person. */
    warnings: z.array(z.object({ code: z.string(), message: z.string() })),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'McpServer' });
export type McpServerRecord = z.output<typeof mcpServerRecord>;

/** The names of referenced credentials that are not stored: the server is not started without them. */
export function listMissingCredentials({ credentials }: Pick<McpServerRecord, 'credentials'>): readonly string[] {
  return credentials.filter(({ required, set }) => required && !set).map(({ name }) => name);
}

/** `GET /v1/mcp-servers`: in the order of owner and name. */
export const mcpServersQuery = z.strictObject({
  ...pageQuery,
  owner: owner.optional(),
  name: z.string().max(48).optional(),
});
export const mcpServersPage = page(mcpServerRecord).meta({ id: 'McpServersPage' });
export const mcpServerParams = z.strictObject({ id: id('mcp') });

/** `POST /v1/mcp-servers/{id}/credentials`: stores it in place of the earlier one. */
export const mcpCredentialInput = z
  .strictObject({ env_var_name: mcpCredentialName, secret_value: secretValue })
  .meta({ id: 'McpCredentialInput' });
export const mcpCredentialReply = z
  .object({ env_var_name: z.string(), stored: z.literal(true) })
  .meta({ id: 'McpCredentialStored' });
export type McpCredentialReply = z.infer<typeof mcpCredentialReply>;
export const mcpCredentialParams = z.strictObject({ id: id('mcp'), name: z.string().min(1).max(128) });

/** How many revisions of a server's configuration are kept. */
export const MAX_MCP_REVISIONS = 20;

/** An earlier configuration of a server, without its credentials. */
const revision = z.object({
  revision: z.number().int(),
  created_at: time,
  /** The user who made the change. */
  changed_by: z.string(),
  configuration: z.object(shown).omit({ id: true, revision: true }),
});

/** `GET /v1/mcp-servers/{id}/revisions`: newest first; the first one is the current one. */
export const mcpRevisionsReply = z.object({ items: z.array(revision) }).meta({ id: 'McpRevisions' });
export type McpRevisionsReply = z.output<typeof mcpRevisionsReply>;

/** `POST /v1/mcp-servers/{id}/rollback`: makes that revision's configuration a new revision. */
export const mcpRollbackInput = z.strictObject({ revision: z.number().int().min(1) }).meta({ id: 'McpRollback' });

const MAX_REPORTED_SERVERS = 1_000;
const MAX_ERROR_CHARACTERS = 1_000;

/** One line from a program's output, without characters that control a terminal. */
const errorLine = z.string().overwrite((text) => toShownLine(text, MAX_ERROR_CHARACTERS));

/**
 * A server names hosts as it likes: what is no host is left out, because a bad one must not hold up the report, and a person may
 * copy a command with it into a shell.
 */
const refusedHosts = z
  .array(z.string())
  .max(MAX_REFUSED_HOSTS)
  .overwrite((hosts) => hosts.filter((host) => isExactHost(host)));

function isExactHost(text: string): boolean {
  const host = normaliseHostOnPort(text);
  return host.ok && host.value === text;
}

/** `POST /v1/sidecar/mcp-health`: what runs on the sidecar's machine. Servers that the sidecar may not see are ignored. */
export const mcpHealthReport = z
  .strictObject({
    servers: z
      .array(
        z.strictObject({
          id: id('mcp'),
          state: z.enum(MCP_HEALTH_STATES),
          last_error: errorLine.nullable(),
          checked_at: time,
          /** Absent from earlier sidecars, and if there are none: earlier control planes refuse the field. */
          refused_hosts: refusedHosts.optional(),
        }),
      )
      .max(MAX_REPORTED_SERVERS),
  })
  .meta({ id: 'McpHealthReport' });
export type McpHealthReport = z.output<typeof mcpHealthReport>;

/** A server in a sidecar's snapshot. Strict: an unknown field may narrow what the server may do. */
const snapshotMcpServer = z
  .strictObject({
    ...shown,
    /** Null: no OAuth 2.0. Otherwise its access token is released at `mcp-servers/{id}/SVC_OAUTH`. */
    authorization: authorizationState.nullable(),
    /** `tools` has the enterprise's rules already; an earlier sidecar takes each list to be short enough, or leaves the server out. */
    tools: mcpToolsInForce,
    /** Only of a server that a rule of the enterprise stops; it is disabled. An earlier sidecar leaves such a server out. */
    rule_problem: z.string().optional(),
  })
  .superRefine(checkMcpServer, { when: () => true });
export type SnapshotMcpServerRecord = z.input<typeof snapshotMcpServer>;

/** A server as a sidecar knows it. */
export interface SnapshotMcpServer {
  readonly server: McpServer;
  readonly authorization: McpAuthorizationState | null;
}

/** A server of a snapshot that cannot be read; the others stay usable. */
export interface UnreadableMcpServer {
  /** Its index in the snapshot. */
  readonly index: number;
  readonly id: string | null;
  readonly message: string;
}

/** The servers of a snapshot, and those that this version cannot use. */
export function readSnapshotMcpServers(records: readonly unknown[]): {
  readonly servers: readonly SnapshotMcpServer[];
  readonly problems: readonly UnreadableMcpServer[];
} {
  const servers: SnapshotMcpServer[] = [];
  const problems: UnreadableMcpServer[] = [];
  for (const [index, record] of records.entries()) {
    const parsed = snapshotMcpServer.safeParse(record);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      problems.push({
        index,
        id: idOf(record),
        message: `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim(),
      });
      continue;
    }
    const settled = withOwnId(parsed.data, parsed.data.id);
    if (settled.ok) servers.push({ server: toMcpServer(settled.value), authorization: parsed.data.authorization });
    else problems.push({ index, id: parsed.data.id, message: settled.error.map(describe).join(', ') });
  }
  return { servers, problems };
}

function describe({ field, message }: { readonly field: string; readonly message: string }): string {
  return `${field} ${message}`;
}

function idOf(record: unknown): string | null {
  const known = z.object({ id: id('mcp') }).safeParse(record);
  return known.success ? known.data.id : null;
}

type ShownServer = Omit<SnapshotMcpServerRecord, 'authorization' | 'rule_problem' | 'tools'> &
  Pick<McpServerRecord, 'tools'> & { readonly rule_problem?: string | null | undefined };

/** The server of a record. */
export function toMcpServer(record: ShownServer): McpServer {
  const { registry_id: registryId, id: serverId, owner: serverOwner, name, description, mode, version } = record;
  const { rule_problem: ruleProblem } = record;
  const { command, env, url, transport, headers, tools, enabled, isolation, revision: number } = record;
  const identity = { id: serverId, owner: serverOwner, name, description, mode, version, registryId };
  const server = { ...identity, command, env, url, transport, headers, tools, enabled, isolation, revision: number };
  // What a rule stops is disabled in the snapshot already; this holds if it were not.
  return typeof ruleProblem === 'string' ? { ...server, enabled: false, ruleProblem } : server;
}
