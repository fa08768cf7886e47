import { z } from 'zod';
import { connectorOfVaultPath } from '../../../shared/model/connector.ts';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { BORROWED_KIND, keySetProblem, MINTED_KEY_ID } from '../../../shared/model/source_kind.ts';
import { SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import { formatVaultReference, parseBindingReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { HostBindingRecord, ValidHostBinding } from '../../../shared/wire/host_binding.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import {
  deleteHostBinding,
  findHostBinding,
  findHostBindingAt,
  findHostBindingsOn,
  type HostBindingRow,
  insertHostBinding,
  listHostBindings,
  replaceHostBinding,
} from '../../store/host_bindings.ts';
import { findSealedSecret } from '../../store/secrets.ts';
import { findSource } from '../../store/sources/secret_sources.ts';
import { findConnectorsNamed } from '../../store/connectors.ts';
import { parseStoredSpec } from '../connectors/connector_records.ts';
import { type Caller, managedData, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import type { AuditDraft, Change } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { definitionGrowth } from '../../kernel/quotas.ts';
import { freshId, timeAfter, nowText, type ServiceContext } from '../../kernel/service_context.ts';

type ChangedBinding = Promise<Result<Changed<HostBindingRecord>, ApiError>>;

/** Refuses with `admin_required`, `duplicate_binding`. */
export async function createHostBinding(
  context: ServiceContext,
  caller: Caller,
  input: ValidHostBinding,
): ChangedBinding {
  const owner = writableOwner(caller, input.owner);
  if (!owner.ok) return owner;
  const now = nowText(context);
  const id = freshId(context, 'bnd');
  const row = toRow(input, {
    id,
    enterpriseId: caller.enterpriseId,
    ownerId: owner.value,
    createdAt: now,
    updatedAt: now,
  });
  return commitPolicy(context, caller, async () => {
    const refused = await refuseCredential(context, row.ownerId, input);
    if (refused !== null) return err(refused);
    const twin = await findHostBindingAt(context.database, row);
    if (twin !== null) return err(duplicateError(twin));
    const write = insertHostBinding(context.database, row, credentialPaths(input));
    const created = change(context, caller, 'control.binding.created', row, write, toRecord(row));
    return ok({
      ...created,
      adds: [{ kind: 'bindings', holder: row.ownerId }, definitionGrowth(row.ownerId, row.record)],
    });
  });
}

/**
 * Replaces every field of a binding except its owner. With `revision` (an `updated_at`), only if it was not changed
 * since. Refuses with `not_found`, `duplicate_binding`, `admin_required`, `invalid_input`, `conflict`.
 */
export async function putHostBinding(
  context: ServiceContext,
  caller: Caller,
  id: string,
  input: ValidHostBinding,
  revision: string | null = null,
): ChangedBinding {
  return commitPolicy(context, caller, async () => {
    const before = await writableBinding(context, caller, id);
    if (!before.ok) return before;
    if (revision !== null && revision !== before.value.updatedAt) return err(changedSinceError(before.value));
    if (ownerName(before.value.ownerId) !== input.owner) return err(ownerChange(before.value));
    const row = toRow(input, { ...before.value, updatedAt: timeAfter(nowText(context), before.value.updatedAt) });
    const refused = await refuseCredential(context, row.ownerId, input);
    if (refused !== null) return err(refused);
    const twin = await findHostBindingAt(context.database, row);
    if (twin !== null) return err(duplicateError(twin));
    const write = replaceHostBinding(context.database, row, credentialPaths(input), before.value.updatedAt);
    const updated = change(context, caller, 'control.binding.updated', row, write, toRecord(row));
    return ok({ ...updated, adds: [definitionGrowth(row.ownerId, row.record, before.value.record)] });
  });
}

/** Refuses with `not_found`, `admin_required`. */
export async function removeHostBinding(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await writableBinding(context, caller, id);
    if (!row.ok) return row;
    const write = deleteHostBinding(context.database, row.value);
    return ok(change(context, caller, 'control.binding.deleted', row.value, write, null));
  });
}

/** Refuses with `not_found`. */
export async function getHostBinding(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<HostBindingRecord, ApiError>> {
  const row = await findHostBinding(context.database, visibleOwners(caller), id);
  return row === null ? err(notFound(id)) : ok(toRecord(row));
}

const bindingPosition = z.strictObject({ ownerId: z.string(), host: z.string(), id: z.string() });

/** Refuses with `invalid_cursor`. */
export async function listHostBindingPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly owner?: Owner | undefined; readonly host?: string | undefined },
): Promise<Result<Page<HostBindingRecord>, ApiError>> {
  const filter = { ownerIds: visibleOwners(caller, query.owner), host: query.host?.toLowerCase() };
  return readPage(query, {
    position: bindingPosition,
    read: (from) => listHostBindings(context.database, { ...filter, ...from }),
    toItem: toRecord,
    positionOf: ({ ownerId, host, id }) => ({ ownerId, host, id }),
  });
}

const ROWS_PER_READ = 200;

/** All bindings of these owners, read in pages because a database reply is limited in size. */
export async function listAllHostBindings(
  context: ServiceContext,
  ownerIds: readonly string[],
): Promise<HostBindingRecord[]> {
  const records: HostBindingRecord[] = [];
  let after: HostBindingRow | null = null;
  for (;;) {
    const rows: HostBindingRow[] = await listHostBindings(context.database, { ownerIds, after, limit: ROWS_PER_READ });
    records.push(...rows.map((row) => toRecord(row)));
    after = rows.at(-1) ?? null;
    if (rows.length < ROWS_PER_READ) return records;
  }
}

/** The bindings of these owners with one of these host patterns. */
export async function hostBindingsOn(
  context: ServiceContext,
  ownerIds: readonly string[],
  hosts: readonly string[],
): Promise<HostBindingRecord[]> {
  const rows = await findHostBindingsOn(context.database, ownerIds, hosts);
  return rows.map((row) => toRecord(row));
}

async function writableBinding(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<HostBindingRow, ApiError>> {
  const row = await findHostBinding(context.database, visibleOwners(caller), id);
  if (row === null) return err(notFound(id));
  const owner = writableOwner(caller, ownerName(row.ownerId));
  return owner.ok ? ok(row) : owner;
}

/** The vault paths that a binding refers to, in its owner's namespace. */
export function credentialPaths(input: Pick<ValidHostBinding, 'credential_ref' | 'session_token_ref'>): string[] {
  const references = [
    input.credential_ref,
    ...(input.session_token_ref === undefined ? [] : [input.session_token_ref]),
  ];
  return references.map((reference) => {
    const path = parseBindingReference(reference);
    if (!path.ok) throw new Error('a binding was stored without being validated');
    return path.value;
  });
}

async function refuseCredential(
  context: ServiceContext,
  ownerId: string,
  input: ValidHostBinding,
): Promise<ApiError | null> {
  const ofConnector = await refuseConnectorCredential(context, ownerId, input);
  return ofConnector ?? refuseKeySet(context, ownerId, input);
}

/** Tells early what the sidecar would refuse: a key set is used whole, by a binding that says so. */
async function refuseKeySet(
  context: ServiceContext,
  ownerId: string,
  input: ValidHostBinding,
): Promise<ApiError | null> {
  const wantsKeySet = input.access_key_id === MINTED_KEY_ID;
  for (const [index, path] of credentialPaths(input).entries()) {
    const secret = await findSealedSecret(context.database, { ownerId, path });
    if (secret === null) continue;
    const reference = formatVaultReference(path);
    const kind = (await findSource(context.database, secret.id))?.source.kind;
    // Only a machine knows whether its program gives a key set; the sidecar compares.
    if (kind === BORROWED_KIND) continue;
    const isKeySet = kind !== undefined && SOURCE_TABLE[kind].value === 'key_set';
    if (isKeySet && !wantsKeySet) {
      const field = index === 0 ? 'credential_ref' : 'session_token_ref';
      return fieldError(field, `cannot be used so: ${keySetProblem(reference)}`);
    }
    if (wantsKeySet && !isKeySet) {
      return fieldError(
        'access_key_id',
        `is "${MINTED_KEY_ID}", but AWS does not mint ${reference}: write the access key id`,
      );
    }
  }
  return null;
}

/**
 * A connector's credential goes to its operations only. The exception is the login of a program: its connector names the hosts
 * at which a binding may use the access token, in place of a placeholder.
 */
async function refuseConnectorCredential(
  context: ServiceContext,
  ownerId: string,
  { credential_ref: reference, host, scheme, emit_mechanism: emit }: ValidHostBinding,
): Promise<ApiError | null> {
  const [path = ''] = credentialPaths({ credential_ref: reference });
  const fqn = connectorOfVaultPath(path);
  if (fqn === null) return null;
  const [row] = await findConnectorsNamed(context.database, [ownerId], fqn);
  const login = row === undefined ? undefined : parseStoredSpec(row.connector).credential.login;
  if (login === undefined) {
    return fieldError('credential_ref', `is the credential of the connector ${fqn}, which serves its operations only`);
  }
  if (!login.hosts.includes(host)) {
    return fieldError('host', `must be ${login.hosts.join(' or ')}: ${fqn} names no other for its access token`);
  }
  if (scheme !== 'bearer' || emit !== 'sentinel-swap') {
    return fieldError('emit_mechanism', `must be "sentinel-swap", and the scheme "bearer", for the login ${fqn}`);
  }
  return null;
}

function fieldError(field: string, message: string): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}

function toRow(input: ValidHostBinding, columns: Omit<HostBindingRow, 'host' | 'sentinel' | 'record'>): HostBindingRow {
  const { id, enterpriseId, ownerId, createdAt, updatedAt } = columns;
  const sentinel = input.sentinel?.value ?? '';
  return { id, enterpriseId, ownerId, host: input.host, sentinel, record: JSON.stringify(input), createdAt, updatedAt };
}

/** The record of a stored binding. */
export function toRecord(row: HostBindingRow): HostBindingRecord {
  const input: ValidHostBinding = JSON.parse(row.record);
  return { ...input, id: row.id, created_at: row.createdAt, updated_at: row.updatedAt };
}

function duplicateError(twin: HostBindingRow): ApiError {
  const withSentinel = twin.sentinel === '' ? '' : ' with the same sentinel';
  const message = `host: ${twin.host} already has a ${ownerName(twin.ownerId)} binding${withSentinel} (${twin.id}): change that one with PUT /v1/host-bindings/${twin.id}, or give each its own sentinel`;
  return apiError('duplicate_binding', message, { binding_id: twin.id });
}

function ownerChange(row: HostBindingRow): ApiError {
  const owner = ownerName(row.ownerId);
  const message = `must stay "${owner}": the owner of a binding cannot change; delete the binding and create one for the other owner`;
  return apiError('invalid_input', `owner ${message}`, { fields: [{ field: 'owner', message }] });
}

function changedSinceError({ host, updatedAt }: HostBindingRow): ApiError {
  const message = `the binding for ${host} was changed at ${updatedAt}, after you read it: read it again, then apply your change`;
  return apiError('conflict', message, { updated_at: updatedAt });
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no binding ${id}: list them with GET /v1/host-bindings`);
}

function change<T>(
  context: ServiceContext,
  caller: Caller,
  type: AuditDraft['type'],
  row: HostBindingRow,
  write: Change<T>['statements'],
  value: T,
): Change<T> {
  const record = toRecord(row);
  const data = {
    'svc.control.resource': row.id,
    'svc.control.credential_ref': record.credential_ref,
    'svc.control.owner': record.owner,
    'svc.proxy.binding.host': record.host,
    'svc.proxy.binding.scheme': record.scheme,
    'svc.proxy.emit': record.emit_mechanism,
    ...(record.keep_cookies === true && { 'svc.proxy.binding.keep_cookies': true }),
  };
  return {
    statements: [...write, bumpPolicy(context.database, row)],
    events: [{ type, actor: caller.userId, data: { ...data, ...managedData(caller) } }],
    value,
  };
}
