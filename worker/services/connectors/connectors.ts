import { z } from 'zod';
import type { AuditEventType } from '../../../shared/model/audit_event.ts';
import { connectorHosts, connectorVaultPath, programOfLogin } from '../../../shared/model/connector.ts';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { formatVaultReference, parseVaultReference } from '../../../shared/model/vault_path.ts';
import { type ConnectorSpecRecord, toConnectorSpec } from '../../../shared/wire/connectors/connector_spec.ts';
import type {
  ConnectorRecord,
  ConnectorSummary,
  InstallReply,
  ValidateReply,
} from '../../../shared/wire/connectors/connectors.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import {
  type ConnectorRow,
  type ConnectorSummaryRow,
  deleteConnector,
  deleteConnectorCredential,
  findConnector,
  findConnectorsNamed,
  findVersionHash,
  insertConnector,
  listConnectors,
  replaceConnector,
  type WithCredential,
} from '../../store/connectors.ts';
import type { Statement } from '../../store/database.ts';
import { type Caller, ownerName, requireScope, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import type { AuditDraft, Change } from '../../kernel/commit.ts';
import { contentHash, parseStoredSpec, toRecord, toSummary } from './connector_records.ts';
import { listAddedHosts, connectorWarnings, isOtherLogin } from './connector_warnings.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { type Changed, commitPolicy } from '../../kernel/policy_change.ts';
import { type Addition, definitionGrowth } from '../../kernel/quotas.ts';
import { freshId, nowText, timeAfter, type ServiceContext } from '../../kernel/service_context.ts';

interface Installed {
  readonly reply: InstallReply;
  readonly isNew: boolean;
}

/**
 * Installs a spec, or replaces the installed version. The credential stays unless its kind changes, or a login would send its
 * access token elsewhere; then it is deleted. A new connector is inactive until it has a credential; another version of one stays as active
 * as it was. With `over`, only over that connector, and only if it still has the spec that the caller read. Refuses with `invalid_input` a name
 * that is reserved for logins, `admin_required`, `conflict`, `connector_version_conflict`, and `insufficient_scope` if a secret that serves it gets
 * further hosts.
 */
export async function installConnector(
  context: ServiceContext,
  caller: Caller,
  owner: Owner,
  spec: ConnectorSpecRecord,
  over: ReadSpec | null = null,
): Promise<Result<Changed<Installed>, ApiError>> {
  const ownerId = writableOwner(caller, owner);
  if (!ownerId.ok) return ownerId;
  const named = checkName(spec);
  if (!named.ok) return named;
  const hash = await contentHash(spec);
  return commitPolicy(context, caller, async () => {
    const [before = null] = await findConnectorsNamed(context.database, [ownerId.value], spec.connector.fqn);
    if (over !== null && !isOver(before?.connector, over, hash)) return err(changedSince(spec));
    if (before === null) return ok(firstInstall(context, caller, newRow(context, caller, ownerId.value, spec, hash)));
    const known = await findVersionHash(context.database, before.connector.id, spec.connector.version);
    if (known !== null && known !== hash) return err(versionConflict(before.connector, spec, known));
    const allowed = mayReach(caller, before, spec);
    return allowed.ok ? ok(replacement(context, caller, before, spec, hash)) : allowed;
  });
}

/** An installed connector, and the hash of its spec as somebody read it. */
type ReadSpec = Pick<ConnectorRecord, 'id' | 'content_hash'>;

/** A spec that is installed already, as by a form that was sent twice, is no change. */
function isOver(held: ConnectorRow | undefined, read: ReadSpec, hash: string): boolean {
  return held?.id === read.id && [read.content_hash, hash].includes(held.contentHash);
}

function changedSince({ connector: { fqn } }: ConnectorSpecRecord): ApiError {
  const message = `${fqn} is no longer what you read: somebody installed another version or removed it`;
  return apiError('conflict', `${message}. Read it again, then apply your change`);
}

/**
 * Names below `login/` are those of logins. Not a rule of the spec itself: a spec that was installed before it has to stay
 * readable, or a sidecar would refuse the requests of all connectors.
 */
function checkName({ connector: { fqn }, credential }: ConnectorSpecRecord): Result<void, ApiError> {
  const isLogin = credential.login !== undefined;
  if ((programOfLogin(fqn) !== null) === isLogin) return ok(undefined);
  const message = isLogin
    ? 'must begin with "login/" for the login of a program'
    : 'begins with "login/", which is reserved for the logins of programs: choose another publisher';
  return err(apiError('invalid_input', `connector.fqn ${message}`, { fields: [{ field: 'connector.fqn', message }] }));
}

function firstInstall(context: ServiceContext, caller: Caller, connector: ConnectorRow): Change<Installed> {
  const row = { connector, credential: null };
  const reply = { ...toRecord(row), warnings: connectorWarnings(toConnectorSpec(parseStoredSpec(connector)), null) };
  const statements = [...insertConnector(context.database, connector), bumpPolicy(context.database, connector)];
  const { ownerId: holder, spec } = connector;
  return {
    statements,
    events: [connectorEvent('control.connector.installed', caller.userId, connector)],
    adds: [{ kind: 'connectors', holder }, { kind: 'connector_versions', holder }, definitionGrowth(holder, spec)],
    value: { reply, isNew: true },
  };
}

function replacement(
  context: ServiceContext,
  caller: Caller,
  before: WithCredential<ConnectorRow>,
  spec: ConnectorSpecRecord,
  hash: string,
): Change<Installed> {
  const { connector: held } = before;
  const warnings = connectorWarnings(toConnectorSpec(spec), toConnectorSpec(parseStoredSpec(held)));
  if (held.version === spec.connector.version) {
    return { statements: [], events: [], value: { reply: { ...toRecord(before), warnings }, isNew: false } };
  }
  const { id, ownerId, createdAt, activatedAt } = held;
  const installed = newRow(context, caller, ownerId, spec, hash);
  // Who accepted this connector from a colleague accepted what it was at this time.
  const updatedAt = timeAfter(installed.updatedAt, held.updatedAt);
  const connector = { ...installed, id, createdAt, activatedAt, updatedAt };
  const isOther =
    connector.credentialKind !== held.credentialKind ||
    isOtherLogin(toConnectorSpec(spec), toConnectorSpec(parseStoredSpec(held)));
  const credential = isOther ? null : before.credential;
  const dropped = isOther ? credentialDeletion(context, caller, before) : { statements: [], events: [] };
  const statements = [
    ...dropped.statements,
    ...replaceConnector(context.database, connector, held.contentHash),
    bumpPolicy(context.database, connector),
  ];
  const events = [...dropped.events, connectorEvent('control.connector.installed', caller.userId, connector)];
  const reply = { ...toRecord({ connector, credential }), warnings };
  const adds: Addition[] = [
    { kind: 'connector_versions', holder: ownerId },
    definitionGrowth(ownerId, connector.spec, held.spec),
  ];
  return { statements, events, adds, value: { reply, isNew: false } };
}

/** A version that sends a stored secret to further hosts is for those who may bind that secret to them. */
function mayReach(
  caller: Caller,
  { connector, credential }: WithCredential<ConnectorRow>,
  spec: ConnectorSpecRecord,
): Result<void, ApiError> {
  const isServed = credential !== null && parseVaultReference(formatVaultReference(credential.path)).ok;
  const added = listAddedHosts(toConnectorSpec(spec), toConnectorSpec(parseStoredSpec(connector)));
  if (!isServed || added.length === 0) return ok(undefined);
  return requireScope(caller, 'host-bindings:write', `this version sends a stored secret to ${added.join(', ')}`);
}

function newRow(
  context: ServiceContext,
  caller: Caller,
  ownerId: string,
  spec: ConnectorSpecRecord,
  hash: string,
): ConnectorRow {
  const now = nowText(context);
  const { fqn, version, title } = spec.connector;
  return {
    id: freshId(context, 'con'),
    enterpriseId: caller.enterpriseId,
    ownerId,
    fqn,
    version,
    title,
    hosts: JSON.stringify(connectorHosts(toConnectorSpec(spec))),
    operationCount: spec.operations.length,
    credentialKind: spec.credential.kind,
    contentHash: hash,
    spec: JSON.stringify(spec),
    installedBy: caller.userId,
    createdAt: now,
    updatedAt: now,
    activatedAt: null,
  };
}

/** What installing would return. Refuses with `invalid_input`. */
export async function validateConnector(spec: ConnectorSpecRecord): Promise<Result<ValidateReply, ApiError>> {
  const named = checkName(spec);
  if (!named.ok) return named;
  const { fqn, version } = spec.connector;
  const warnings = connectorWarnings(toConnectorSpec(spec), null);
  return ok({ fqn, version, content_hash: await contentHash(spec), operation_count: spec.operations.length, warnings });
}

/** Removes a connector with its credential. Refuses with `not_found`, `admin_required`. */
export async function removeConnector(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await writableConnector(context, caller, id);
    if (!row.ok) return row;
    const { connector } = row.value;
    const credential = credentialDeletion(context, caller, row.value);
    const statements = [
      ...credential.statements,
      ...deleteConnector(context.database, connector),
      bumpPolicy(context.database, connector),
    ];
    const events = [...credential.events, connectorEvent('control.connector.removed', caller.userId, connector)];
    return ok({ statements, events, value: null });
  });
}

/** Deletes the credential of a connector, if it has one. */
export function credentialDeletion(
  context: ServiceContext,
  caller: Caller,
  { connector, credential }: WithCredential<ConnectorSummaryRow>,
): { readonly statements: readonly Statement[]; readonly events: readonly AuditDraft[] } {
  if (credential === null) return { statements: [], events: [] };
  return {
    statements: deleteConnectorCredential(context.database, credential),
    events: [connectorEvent('control.connector.credential_deleted', caller.userId, connector, credential.path)],
  };
}

/** Refuses with `not_found`. */
export async function getConnector(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<ConnectorRecord, ApiError>> {
  const row = await findConnector(context.database, visibleOwners(caller), id);
  return row === null ? err(connectorNotFound(id)) : ok(toRecord(row));
}

/** A connector that the caller may change. Refuses with `not_found`, `admin_required`. */
export async function writableConnector(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<WithCredential<ConnectorRow>, ApiError>> {
  const row = await findConnector(context.database, visibleOwners(caller), id);
  if (row === null) return err(connectorNotFound(id));
  const owner = writableOwner(caller, ownerName(row.connector.ownerId));
  return owner.ok ? ok(row) : owner;
}

const connectorPosition = z.strictObject({ ownerId: z.string(), fqn: z.string() });

/** Refuses with `invalid_cursor`. */
export async function listConnectorPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly owner?: Owner | undefined; readonly fqn?: string | undefined },
): Promise<Result<Page<ConnectorSummary>, ApiError>> {
  const ownerIds = visibleOwners(caller, query.owner);
  return readPage(query, {
    position: connectorPosition,
    read: (from) => listConnectors(context.database, { ownerIds, fqn: query.fqn, ...from }),
    toItem: toSummary,
    positionOf: ({ connector: { ownerId, fqn } }) => ({ ownerId, fqn }),
  });
}

/** The audit data of a connector's change; `path` is where its credential is. */
export function connectorEvent(
  type: AuditEventType,
  actor: string | null,
  connector: ConnectorSummaryRow,
  path: string = connectorVaultPath(connector.fqn),
): AuditDraft {
  const data = {
    'svc.control.resource': connector.id,
    'svc.control.owner': ownerName(connector.ownerId),
    'svc.connector.fqn': connector.fqn,
    'svc.connector.version': connector.version,
    'svc.connector.credential_ref': formatVaultReference(path),
  };
  return { type, actor, data };
}

export function connectorNotFound(id: string): ApiError {
  return apiError('not_found', `there is no connector ${id}: list them with GET /v1/connectors`);
}

function versionConflict(held: ConnectorRow, { connector }: ConnectorSpecRecord, hash: string): ApiError {
  const message = `${connector.fqn} ${connector.version} was installed before with other content: change the version of the spec, or remove the connector first`;
  return apiError('connector_version_conflict', message, { connector_id: held.id, content_hash: hash });
}
