import { connectorVaultPath } from '../../../../shared/model/connector.ts';
import { mcpVaultPath } from '../../../../shared/model/mcp_server.ts';
import type { Secret } from '../../../../shared/model/secret.ts';
import type { MoveTarget } from '../../../../shared/wire/vault_moves.ts';
import type { Caller } from '../../../kernel/caller.ts';
import type { ServiceContext } from '../../../kernel/service_context.ts';
import { findConnector } from '../../../store/connectors.ts';
import { findMcpServer } from '../../../store/mcp/mcp_servers.ts';
import { findSealedSecret, type SecretRow } from '../../../store/secrets.ts';
import { findSourceAt } from '../../../store/sources/secret_sources.ts';
import { openSourceKey, sourceOf } from '../../sources/sourced_secret.ts';
import { openRow } from '../secrets.ts';

/** A value as it is stored, with what it is: the digests of another kind of thing with the same text differ. */
export interface HeldValue {
  readonly target: MoveTarget;
  readonly value: Secret;
}

/** What the caller has at a target now; null if nothing. Only rows of the caller's own count, never the enterprise's. */
export async function findHeldValue(
  context: ServiceContext,
  { userId }: Pick<Caller, 'userId'>,
  target: MoveTarget,
): Promise<HeldValue | null> {
  if (target.kind === 'secret' || target.kind === 'source') return atPath(context, userId, target.path);
  const path = await reservedPath(context, userId, target);
  const row = path === null ? null : await findSealedSecret(context.database, { ownerId: userId, path });
  return row === null ? null : { target, value: await openRow(context, row) };
}

/** Whether a target is a path, or a connector or a server that is the caller's own: an admin may write to the enterprise's too. */
export async function isOwnTarget(
  context: ServiceContext,
  { userId }: Pick<Caller, 'userId'>,
  target: MoveTarget,
): Promise<boolean> {
  if (target.kind === 'secret' || target.kind === 'source') return true;
  return (await reservedPath(context, userId, target)) !== null;
}

async function atPath(context: ServiceContext, ownerId: string, path: string): Promise<HeldValue | null> {
  const row = await findSealedSecret(context.database, { ownerId, path });
  return row === null ? null : heldOf(context, row);
}

async function heldOf(context: ServiceContext, row: SecretRow): Promise<HeldValue> {
  const { path } = row;
  const sourced = await findSourceAt(context.database, row);
  if (sourced === null) {
    const end = row.expiresAt === null ? {} : { expires_at: row.expiresAt };
    return { target: { kind: 'secret', path, ...end }, value: await openRow(context, row) };
  }
  const target = { kind: 'source' as const, path, source: sourceOf(sourced.source) };
  return { target, value: await openSourceKey(context, sourced) };
}

/** Where the credential of a connector or of a server of this user is; null if it is none of this user's. */
async function reservedPath(
  context: ServiceContext,
  ownerId: string,
  target: Extract<MoveTarget, { readonly kind: 'connector' | 'mcp_server' }>,
): Promise<string | null> {
  if (target.kind === 'mcp_server') {
    const server = await findMcpServer(context.database, [ownerId], target.server_id);
    return server === null ? null : mcpVaultPath(server.id, target.name);
  }
  const row = await findConnector(context.database, [ownerId], target.connector_id);
  return row === null ? null : connectorVaultPath(row.connector.fqn);
}
