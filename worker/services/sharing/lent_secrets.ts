import { connectorOfVaultPath, connectorVaultPath } from '../../../shared/model/connector.ts';
import { mcpCredentialAt, mcpServerOfToken } from '../../../shared/model/mcp_server.ts';
import { referencesOf } from '../../../shared/mcp/references.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { McpServerRow } from '../../store/mcp/mcp_servers.ts';
import { findReferredSecret, type SecretRow, type SecretSummary } from '../../store/secrets.ts';
import {
  type ConnectorAccess,
  ofColleague,
  type UsableConnector,
  usableAccess,
} from '../connectors/connector_access.ts';
import { serverOf } from '../mcp/mcp_configuration.ts';
import { accessToken } from '../oauth/oauth_access_token.ts';
import type { ShareUser } from './received.ts';
import { findSharedConnector } from './shared_connectors.ts';
import { listSecretsAt, type SharedPlace } from './shared_secrets.ts';
import { findSharedServer } from './shared_servers.ts';

/** What a user's sidecar uses of colleagues, apart from bindings. */
interface Lent {
  readonly connectors: readonly UsableConnector[];
  readonly servers: readonly McpServerRow[];
}

/** The secrets of shared connectors and MCP servers, each with the path by which its receiver's sidecar asks for it. */
export async function findLentSecrets(
  context: ServiceContext,
  { connectors, servers }: Lent,
): Promise<readonly { readonly path: string; readonly row: SecretSummary }[]> {
  const ofConnectors = connectors.flatMap(({ connector, sharedFrom }): SharedPlace[] => {
    const place = sharedFrom?.credential ?? null;
    if (place === null) return [];
    return [{ path: connectorVaultPath(connector.fqn), ownerId: place.ownerId, ownerPath: place.path }];
  });
  const ofServers = servers.flatMap((row) =>
    referencesOf(serverOf(row)).map((path): SharedPlace => ({ path, ownerId: row.ownerId, ownerPath: path })),
  );
  return listSecretsAt(context, [...ofConnectors, ...ofServers]);
}

/** What is behind a path that a sidecar asks for, and whose it is: a stored value, or the token of a connector or a server. */
export type LentCredential =
  | { readonly kind: 'secret'; readonly sharedBy: string; readonly row: SecretRow }
  | { readonly kind: 'access'; readonly sharedBy: string; readonly access: Result<ConnectorAccess, ApiError> };

/** The credential of a shared connector or MCP server that is in the user's policy now; null if the path names none. */
export async function findLentCredential(
  context: ServiceContext,
  user: ShareUser,
  path: string,
): Promise<LentCredential | null> {
  const fqn = connectorOfVaultPath(path);
  if (fqn !== null) return ofConnector(context, await findSharedConnector(context, user, { fqn }));
  const credential = mcpCredentialAt(path);
  const server = credential === null ? null : await findSharedServer(context, user, credential.serverId);
  return server === null ? null : ofServer(context, server, path);
}

async function ofConnector(context: ServiceContext, found: UsableConnector | null): Promise<LentCredential | null> {
  if (found?.sharedFrom === undefined || found.sharedFrom.credential === null) return null;
  const sharedBy = found.sharedFrom.connector.ownerId;
  return { kind: 'access', sharedBy, access: await usableAccess(context, found) };
}

async function ofServer(context: ServiceContext, server: McpServerRow, path: string): Promise<LentCredential | null> {
  const sharedBy = server.ownerId;
  if (mcpServerOfToken(path) !== null) {
    const access = await accessToken(context, server.id);
    if (!access.ok && access.error.code === 'binding_required') return null;
    return { kind: 'access', sharedBy, access: access.ok ? ok(access.value) : err(ofColleague(access.error)) };
  }
  if (!referencesOf(serverOf(server)).includes(path)) return null;
  const row = await findReferredSecret(context.database, { ownerId: server.ownerId, path });
  return row === null ? null : { kind: 'secret', sharedBy, row };
}
