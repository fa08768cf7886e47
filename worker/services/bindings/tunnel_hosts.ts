import { z } from 'zod';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { findInterceptor } from '../../../shared/net/tunnel_host.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { TunnelHostInput, TunnelHostRecord } from '../../../shared/wire/hosts/tunnel_hosts.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import { findClientCertificateAt } from '../../store/hosts/client_certificates.ts';
import {
  deleteTunnelHost,
  findTunnelHost,
  findTunnelHostAt,
  insertTunnelHost,
  listTunnelHosts,
  type TunnelHostRow,
} from '../../store/hosts/tunnel_hosts.ts';
import { type Caller, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import type { AuditDraft, Change } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { listAllConnectors } from '../connectors/all_connectors.ts';
import { listAllHostBindings } from './host_bindings.ts';

/**
 * Adds a host or pattern that is not intercepted (decision 0074). Refuses with `admin_required`, `limit_reached`, and with `conflict` one that
 * is listed, or that would have no effect because a binding or a connector that the caller sees has it.
 */
export async function addTunnelHost(
  context: ServiceContext,
  caller: Caller,
  { host, owner }: TunnelHostInput,
): Promise<Result<Changed<TunnelHostRecord>, ApiError>> {
  const ownerId = writableOwner(caller, owner);
  if (!ownerId.ok) return ownerId;
  const { enterpriseId } = caller;
  const row = { id: freshId(context, 'tnl'), enterpriseId, ownerId: ownerId.value, host, createdAt: nowText(context) };
  return commitPolicy(context, caller, async () => {
    const twin = await findTunnelHostAt(context.database, row);
    if (twin !== null) return err(conflict(twin.id, `${host} is on the list already`));
    const found = await findVisibleInterceptor(context, caller, host);
    if (found !== null) return err(conflict(null, found));
    const write = insertTunnelHost(context.database, row);
    const added = change(context, caller, 'control.tunnel_host.added', row, write, toRecord(row));
    return ok({ ...added, adds: [{ kind: 'tunnel_hosts', holder: row.ownerId }] });
  });
}

/** Refuses with `not_found`, `admin_required`. */
export async function removeTunnelHost(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await findTunnelHost(context.database, visibleOwners(caller), id);
    if (row === null) return err(notFound(id));
    const owner = writableOwner(caller, ownerName(row.ownerId));
    if (!owner.ok) return owner;
    const write = deleteTunnelHost(context.database, row);
    return ok(change(context, caller, 'control.tunnel_host.removed', row, write, null));
  });
}

/** Refuses with `not_found`. */
export async function getTunnelHost(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<TunnelHostRecord, ApiError>> {
  const row = await findTunnelHost(context.database, visibleOwners(caller), id);
  return row === null ? err(notFound(id)) : ok(toRecord(row));
}

const position = z.strictObject({ ownerId: z.string(), host: z.string() });

/** Refuses with `invalid_cursor`. */
export async function listTunnelHostPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly owner?: Owner | undefined },
): Promise<Result<Page<TunnelHostRecord>, ApiError>> {
  const ownerIds = visibleOwners(caller, query.owner);
  return readPage(query, {
    position,
    read: (from) => listTunnelHosts(context.database, { ownerIds, ...from }),
    toItem: toRecord,
    positionOf: ({ ownerId, host }) => ({ ownerId, host }),
  });
}

/** Every host and pattern of these owners, each once. */
export async function listAllTunnelHosts(context: ServiceContext, ownerIds: readonly string[]): Promise<string[]> {
  const rows = await listTunnelHosts(context.database, { ownerIds, after: null, limit: Number.MAX_SAFE_INTEGER });
  return [...new Set(rows.map(({ host }) => host))];
}

/** Why every host of the pattern stays intercepted, and what to do; null if the pattern has an effect. */
async function findVisibleInterceptor(context: ServiceContext, caller: Caller, host: string): Promise<string | null> {
  const owners = visibleOwners(caller);
  const certified = await findClientCertificateAt(context.database, { ownerId: caller.userId, host });
  if (certified !== null) {
    return `host: ${host} has a client certificate (${certified.id}), so its requests must be intercepted: remove it first (svc cert rm ${host}), or leave the host out`;
  }
  const bindings = (await listAllHostBindings(context, owners)).map((binding) => binding.host);
  const connectors = host.startsWith('*')
    ? []
    : (await listAllConnectors(context, owners, host)).map(({ connector }) => connector.fqn);
  const bound = findInterceptor(host, bindings);
  if (bound !== null) {
    return `host: ${host} has a binding (${bound}), so its requests must be intercepted: delete the binding first (svc binding rm ${bound}), or leave the host out`;
  }
  const [connector] = connectors;
  return connector === undefined
    ? null
    : `host: ${host} is a host of the connector ${connector}, so its requests must be intercepted: remove the connector first (svc connector rm ${connector}), or leave the host out`;
}

function toRecord({ id, host, ownerId, createdAt }: TunnelHostRow): TunnelHostRecord {
  return { id, host, owner: ownerName(ownerId), created_at: createdAt };
}

function conflict(id: string | null, message: string): ApiError {
  return apiError('conflict', message, id === null ? {} : { tunnel_host_id: id });
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no tunnelled host ${id}: list them with GET /v1/tunnel-hosts`);
}

function change<T>(
  context: ServiceContext,
  caller: Caller,
  type: AuditDraft['type'],
  row: TunnelHostRow,
  write: Change<T>['statements'],
  value: T,
): Change<T> {
  const data = {
    'svc.control.resource': row.id,
    'svc.control.host': row.host,
    'svc.control.owner': ownerName(row.ownerId),
  };
  return {
    statements: [...write, bumpPolicy(context.database, row)],
    events: [{ type, actor: caller.userId, data }],
    value,
  };
}
