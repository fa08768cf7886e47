import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { formatVaultReference, parseVaultReference } from '../../../shared/model/vault_path.ts';
import type {
  ClientCertificateInput,
  ClientCertificateRecord,
} from '../../../shared/wire/hosts/client_certificates.ts';
import { clientCertificateRecord } from '../../../shared/wire/hosts/client_certificates.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import {
  type ClientCertificateRow,
  deleteClientCertificate,
  findClientCertificate,
  findClientCertificateAt,
  insertClientCertificate,
  listClientCertificates,
} from '../../store/hosts/client_certificates.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AuditDraft, Change } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';

/**
 * Presents a client certificate to a host (decision 0168), and withdraws the one that the host has in the same write: at no time has
 * it none. The secret is looked at by the sidecar alone, which opens it. Refuses with `limit_reached`.
 */
export async function addClientCertificate(
  context: ServiceContext,
  caller: Caller,
  { host, credential_ref: reference, effect, http2 }: ClientCertificateInput,
): Promise<Result<Changed<{ record: ClientCertificateRecord; created: boolean }>, ApiError>> {
  const path = parseVaultReference(reference);
  if (!path.ok) return err(apiError('invalid_input', `credential_ref ${path.error.message}`));
  const row: ClientCertificateRow = {
    id: freshId(context, 'crt'),
    enterpriseId: caller.enterpriseId,
    ownerId: caller.userId,
    host,
    path: path.value,
    effect: effect ?? null,
    http2: http2 === true,
    createdAt: nowText(context),
  };
  return commitPolicy(context, caller, async () => {
    const before = await findClientCertificateAt(context.database, row);
    const write = insertClientCertificate(context.database, row);
    const value = { record: toRecord(row), created: before === null };
    const added = change(context, caller, 'control.client_certificate.added', row, write, value);
    if (before === null) return ok({ ...added, adds: [{ kind: 'client_certificates', holder: row.ownerId }] });
    const removed = removal(context, caller, before);
    return ok({
      ...added,
      statements: [...removed.statements, ...added.statements],
      events: [...removed.events, ...added.events],
    });
  });
}

/** Refuses with `not_found`. Its secret stays. */
export async function removeClientCertificate(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await findClientCertificate(context.database, caller.userId, id);
    if (row === null) return err(notFound(id));
    return ok(removal(context, caller, row));
  });
}

function removal(context: ServiceContext, caller: Caller, row: ClientCertificateRow): Change<null> {
  const write = deleteClientCertificate(context.database, row);
  return change(context, caller, 'control.client_certificate.removed', row, write, null);
}

/** Refuses with `not_found`. */
export async function getClientCertificate(
  { database }: Pick<ServiceContext, 'database'>,
  caller: Caller,
  id: string,
): Promise<Result<ClientCertificateRecord, ApiError>> {
  const row = await findClientCertificate(database, caller.userId, id);
  return row === null ? err(notFound(id)) : ok(toRecord(row));
}

const position = z.strictObject({ host: z.string() });

/** Refuses with `invalid_cursor`. */
export async function listClientCertificatePage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<ClientCertificateRecord>, ApiError>> {
  return readPage(query, {
    position,
    read: ({ after, limit }) =>
      listClientCertificates(context.database, { ownerId: caller.userId, after: after?.host ?? null, limit }),
    toItem: toRecord,
    positionOf: ({ host }) => ({ host }),
  });
}

/** All of a user. */
export async function listAllClientCertificates(
  context: Pick<ServiceContext, 'database'>,
  ownerId: string,
): Promise<ClientCertificateRecord[]> {
  const rows = await listClientCertificates(context.database, { ownerId, after: null, limit: Number.MAX_SAFE_INTEGER });
  return rows.map(toRecord);
}

function toRecord({ id, host, path, effect, http2, createdAt }: ClientCertificateRow): ClientCertificateRecord {
  return clientCertificateRecord.parse({
    id,
    host,
    credential_ref: formatVaultReference(path),
    ...(effect !== null && { effect }),
    ...(http2 && { http2: true }),
    created_at: createdAt,
  });
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no client certificate ${id}: list them with GET /v1/client-certificates`);
}

function change<T>(
  context: ServiceContext,
  caller: Caller,
  type: AuditDraft['type'],
  row: ClientCertificateRow,
  write: Change<T>['statements'],
  value: T,
): Change<T> {
  const data = {
    'svc.control.resource': row.id,
    'svc.control.host': row.host,
    'svc.control.credential_ref': formatVaultReference(row.path),
  };
  return {
    statements: [...write, bumpPolicy(context.database, row)],
    events: [{ type, actor: caller.userId, data }],
    value,
  };
}
