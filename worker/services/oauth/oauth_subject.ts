import { connectorVaultPath } from '../../../shared/model/connector.ts';
import { MCP_OAUTH_NAME, mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { isId } from '../../../shared/wire/ids.ts';
import { type ConnectorCredentialRow, type ConnectorSummaryRow, findConnectorById } from '../../store/connectors.ts';
import { findMcpAuthorization } from '../../store/mcp/mcp_authorizations.ts';
import type { McpServerRow } from '../../store/mcp/mcp_servers.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AuditDraft } from '../../kernel/commit.ts';
import { credentialProblem, nothingStoredError, reauthorisationRequired } from '../connectors/connector_problems.ts';
import { connectorEvent, writableConnector } from '../connectors/connectors.ts';
import { mcpNothingStored, mcpReauthorisationRequired } from '../mcp/mcp_problems.ts';
import { mcpServerEvent, writableMcpServer } from '../mcp/mcp_servers.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** The audit events of an oauth2 credential. */
export type OAuthChange = 'stored' | 'refreshed' | 'reauthorisation_required' | 'tokens_revoked' | 'tokens_not_revoked';

/** The owner of an oauth2 credential: a connector or a remote MCP server. */
export interface OAuthSubject {
  readonly id: string;
  readonly enterpriseId: string;
  readonly ownerId: string;
  /** Its name for people. */
  readonly name: string;
  /** The vault place of the credential's secret part. */
  readonly path: string;
  /** The description of that vault entry. */
  readonly description: string;
  event(change: OAuthChange, actor: string | null): AuditDraft;
  /** Why its credential gives no token; null if it does. */
  problem(credential: ConnectorCredentialRow | null): ApiError | null;
  /** The refusal if there is no credential. */
  nothingStoredError(): ApiError;
  /** The refusal if the provider no longer accepts it. */
  reauthorisationRequired(): ApiError;
}

/** A subject with its credential; null if none is stored. */
interface FoundSubject {
  readonly subject: OAuthSubject;
  readonly credential: ConnectorCredentialRow | null;
}

/** Finds the subject with this id, whoever owns it. The caller's access was checked when the authorisation started. */
export async function findOAuthSubject(context: ServiceContext, id: string): Promise<FoundSubject | null> {
  if (isId('mcp', id)) {
    const found = await findMcpAuthorization(context.database, id);
    return found && { subject: mcpSubject(found.server), credential: found.credential };
  }
  const row = await findConnectorById(context.database, id);
  return row && { subject: connectorSubject(row.connector), credential: row.credential };
}

/** Whether the caller may change it now. Refuses with `not_found`, `admin_required`. */
export async function checkWritable(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  const row = isId('mcp', id)
    ? await writableMcpServer(context, caller, id)
    : await writableConnector(context, caller, id);
  return row.ok ? ok(null) : err(row.error);
}

const CONNECTOR_EVENTS = {
  stored: 'control.connector.credential_stored',
  refreshed: 'control.connector.credential_refreshed',
  reauthorisation_required: 'control.connector.reauthorisation_required',
  tokens_revoked: 'control.connector.tokens_revoked',
  tokens_not_revoked: 'control.connector.tokens_not_revoked',
} as const;

function connectorSubject(connector: ConnectorSummaryRow): OAuthSubject {
  const { id, enterpriseId, ownerId, fqn } = connector;
  return {
    id,
    enterpriseId,
    ownerId,
    name: fqn,
    path: connectorVaultPath(fqn),
    description: `credential of the connector ${fqn}`,
    event: (change, actor) => connectorEvent(CONNECTOR_EVENTS[change], actor, connector),
    problem: (credential) => credentialProblem({ connector, credential }),
    nothingStoredError: () => nothingStoredError(connector),
    reauthorisationRequired: () => reauthorisationRequired(connector),
  };
}

const MCP_EVENTS = {
  stored: 'control.mcp_server.credential_stored',
  refreshed: 'control.mcp_server.credential_refreshed',
  reauthorisation_required: 'control.mcp_server.reauthorisation_required',
  tokens_revoked: 'control.mcp_server.tokens_revoked',
  tokens_not_revoked: 'control.mcp_server.tokens_not_revoked',
} as const;

export function mcpSubject(server: McpServerRow): OAuthSubject {
  const { id, enterpriseId, ownerId, name } = server;
  return {
    id,
    enterpriseId,
    ownerId,
    name,
    path: mcpVaultPath(id, MCP_OAUTH_NAME),
    description: `authorisation of the MCP server ${name}`,
    event: (change, actor) => mcpServerEvent(MCP_EVENTS[change], actor, server, MCP_OAUTH_NAME),
    problem(credential) {
      if (credential?.state === 'ready') return null;
      const isTakenBack = credential?.state === 'reauthorisation_required';
      return isTakenBack ? mcpReauthorisationRequired(server) : mcpNothingStored(server);
    },
    nothingStoredError: () => mcpNothingStored(server),
    reauthorisationRequired: () => mcpReauthorisationRequired(server),
  };
}
