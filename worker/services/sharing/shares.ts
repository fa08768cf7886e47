import type { FieldProblem } from '../../../shared/model/problem.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import { mayEndShare, needsAcceptance } from '../../../shared/sharing/share_rules.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { ShareInput, ShareKind, ShareRecord, sharesQuery } from '../../../shared/wire/sharing/shares.ts';
import type { z } from 'zod';
import type { Scope } from '../../../shared/wire/tokens.ts';
import { type Caller, mayActAs, requireScope } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { readPageById } from '../../kernel/cursors.ts';
import { type Changed, commitPolicy, controlChain } from '../../kernel/policy_change.ts';
import type { Addition } from '../../kernel/quotas.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { findConnector } from '../../store/connectors.ts';
import { findHostBinding } from '../../store/host_bindings.ts';
import { findMcpServer } from '../../store/mcp/mcp_servers.ts';
import { findMember } from '../../store/members.ts';
import { findColleague, findGroup } from '../../store/people/groups.ts';
import {
  acceptShare,
  declineShare,
  deleteShare,
  findSameShare,
  findShare,
  insertShare,
  listShares,
  type ShareRow,
  type ShownShare,
} from '../../store/people/shares.ts';
import { growthOfAcceptances } from '../../store/quotas.ts';
import { credentialPaths, toRecord as toBindingRecord } from '../bindings/host_bindings.ts';
import { configurationOf } from '../mcp/mcp_configuration.ts';
import { findSourceAt } from '../../store/sources/secret_sources.ts';
import { listReceived, type Received, resourceOf, type SharedResource, shareProblem } from './received.ts';

type SharesQuery = z.output<typeof sharesQuery>;

/** Shares a binding, connector or MCP server of the caller's own. Refuses with `insufficient_scope`, `not_found`, `invalid_input`, `conflict`, `limit_reached`. */
export async function createShare(
  context: ServiceContext,
  caller: Caller,
  input: ShareInput,
): Promise<Result<ShareRecord, ApiError>> {
  const allowed = mayShare(caller, kindOf(input));
  if (!allowed.ok) return allowed;
  return commit(context, controlChain(caller), async () => {
    const found = await findResource(context, caller, input);
    if (!found.ok) return found;
    const resource = found.value;
    const problem = shareProblem(resource) ?? (await borrowProblem(context, resource));
    if (problem !== null) return err(notSharable(resource, problem));
    const receiver = await findReceiver(context, caller, input);
    if (!receiver.ok) return receiver;
    const row = newShare(context, caller, resource, receiver.value);
    const twin = await findSameShare(context.database, row);
    if (twin !== null) return err(sharedAlready(twin));
    const write = insertShare(context.database, row, resource.row.updatedAt);
    const sharer = await findMember(context.database, caller.enterpriseId, caller.userId);
    const shown = { share: row, resource, sharer: { id: caller.userId, displayName: sharer?.displayName ?? '' } };
    const made = change(caller, 'control.share.created', row, write, toRecord({ ...shown, ...receiver.value }));
    return ok({ ...made, adds: [{ kind: 'shares', holder: caller.userId }] });
  });
}

/** The shares that the caller gave or received; for admins also all of the enterprise. Refuses with `admin_required`, `invalid_cursor`. */
export async function listSharePage(
  context: ServiceContext,
  caller: Caller,
  { list, ...query }: SharesQuery,
): Promise<Result<Page<ShareRecord>, ApiError>> {
  if (list === 'all' && !mayActAs(caller, 'admin')) {
    return err(
      apiError('admin_required', 'the shares of others are listed for admins: ask for list=given or list=received'),
    );
  }
  if (list === 'received') {
    const received = (await listReceived(context, caller)).map((each) => ({ id: each.share.id, each }));
    return readPageById(query, 'shr', {
      read: async ({ after, limit }) => received.filter(({ id }) => after === null || id > after).slice(0, limit),
      toItem: ({ each }) => toRecord(each, each.state),
    });
  }
  const { enterpriseId, userId } = caller;
  const whose = list === 'all' ? { enterpriseId } : { enterpriseId, ownerId: userId };
  return readPageById(query, 'shr', {
    read: async (from) => (await listShares(context.database, { ...whose, ...from })).map(withId),
    toItem: ({ row }) => toRecord({ ...row, resource: resourceOf(row) }),
  });
}

const withId = (row: ShownShare) => ({ id: row.share.id, row });

/** What the caller names, if it is the caller's or the enterprise's. */
async function findResource(
  { database }: ServiceContext,
  { userId, enterpriseId }: Caller,
  { binding_id: bindingId, connector_id: connectorId, mcp_server_id: serverId }: ShareInput,
): Promise<Result<SharedResource, ApiError>> {
  const owners = [userId, enterpriseId];
  if (connectorId !== undefined) {
    const found = await findConnector(database, owners, connectorId);
    return found === null ? err(noThing('connector', connectorId)) : ok({ kind: 'connector', row: found.connector });
  }
  if (serverId !== undefined) {
    const row = await findMcpServer(database, owners, serverId);
    return row === null ? err(noThing('mcp_server', serverId)) : ok({ kind: 'mcp_server', row });
  }
  const row = await findHostBinding(database, owners, bindingId ?? '');
  return row === null ? err(noThing('host_binding', bindingId ?? '')) : ok({ kind: 'host_binding', row });
}

/** Ends a share, for whoever gave it and for admins. Refuses with `not_found`. */
export async function removeShare(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const found = await findShare(context.database, caller.enterpriseId, id);
    if (found === null || !mayEndShare(caller, found.share)) return err(noShare(id));
    return ok(change(caller, 'control.share.deleted', found.share, deleteShare(context.database, id), null));
  });
}

/** Accepts a received share in the revision that the caller saw. Refuses with `not_found`, `insufficient_scope`, `conflict`. */
export async function acceptReceived(
  context: ServiceContext,
  caller: Caller,
  id: string,
  revision: string,
): Promise<Result<Changed<ShareRecord>, ApiError>> {
  const accepted = await commitPolicy(context, caller, async () => {
    const found = await findReceived(context, caller, id);
    if (!found.ok) return found;
    const allowed = mayShare(caller, found.value.resource.kind);
    if (!allowed.ok) return allowed;
    if (found.value.resource.row.updatedAt !== revision) return err(changedSince(id));
    const write = acceptShare(context.database, found.value.share, { userId: caller.userId, revision });
    const made = change(caller, 'control.share.accepted', found.value.share, write, null);
    return ok({ ...made, adds: acceptance(caller.userId, found.value) });
  });
  if (!accepted.ok) return accepted;
  const now = await findReceived(context, caller, id);
  return now.ok ? ok({ ...accepted.value, value: toRecord(now.value, now.value.state) }) : now;
}

/** Takes the acceptance of a received share back. Refuses with `not_found`, and with `conflict` what is used without one. */
export async function declineReceived(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<Changed<null>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const found = await findReceived(context, caller, id);
    if (!found.ok) return found;
    if (!needsAcceptance(found.value.sharer)) return err(usedAnyway(found.value));
    const write = declineShare(context.database, { shareId: id, userId: caller.userId });
    return ok(change(caller, 'control.share.declined', found.value.share, write, null));
  });
}

/** What an acceptance adds; it is in place of an earlier one of the same share. */
function acceptance(holder: string, { share }: Received): Addition[] {
  const { rows, bytes } = growthOfAcceptances(share, holder);
  return [
    { kind: 'accepted_shares', holder, by: rows },
    { kind: 'accepted_bytes', holder, by: bytes },
  ];
}

async function findReceived(context: ServiceContext, caller: Caller, id: string): Promise<Result<Received, ApiError>> {
  const received = (await listReceived(context, caller)).find(({ share }) => share.id === id);
  return received === undefined ? err(noShare(id)) : ok(received);
}

/** Whom something is shared with. */
type Receiver = Pick<ShownShare, 'receiver' | 'group'>;

async function findReceiver(
  context: ServiceContext,
  { enterpriseId, userId }: Caller,
  { group_id: groupId, user_id: id, email }: ShareInput,
): Promise<Result<Receiver, ApiError>> {
  const { database } = context;
  if (groupId !== undefined) {
    const group = await findGroup(database, enterpriseId, { id: groupId, now: nowText(context) });
    return group === null ? err(noReceiver('group_id', 'a group', 'GET /v1/groups')) : ok({ receiver: null, group });
  }
  const user =
    email === undefined
      ? await findMember(database, enterpriseId, id ?? '')
      : await findColleague(database, enterpriseId, email.toLowerCase());
  const field = email === undefined ? 'user_id' : 'email';
  if (user === null) return err(noReceiver(field, 'a member', 'GET /v1/groups'));
  if (user.id === userId) return err(fieldError(field, 'is your own: you use it already'));
  return ok({ receiver: { id: user.id, displayName: user.displayName }, group: null });
}

function newShare(
  context: ServiceContext,
  { enterpriseId, userId }: Caller,
  { kind, row }: SharedResource,
  { receiver, group }: Receiver,
): ShareRow {
  return {
    id: freshId(context, 'shr'),
    enterpriseId,
    ownerId: userId,
    kind,
    resourceId: row.id,
    userId: receiver?.id ?? null,
    groupId: group?.id ?? null,
    createdAt: nowText(context),
  };
}

function change<T>(
  caller: Caller,
  type: AuditDraft['type'],
  { id, resourceId, userId, groupId }: ShareRow,
  statements: Change<T>['statements'],
  value: T,
): Change<T> {
  const data = {
    'svc.control.resource': id,
    'svc.control.shared': resourceId,
    ...(userId === null ? {} : { 'svc.control.user': userId }),
    ...(groupId === null ? {} : { 'svc.control.group': groupId }),
  };
  return { statements, events: [{ type, actor: caller.userId, data }], value };
}

/** A share as a reply shows it. */
type Shown = Pick<ShownShare, 'share' | 'receiver' | 'group'> & {
  readonly resource: SharedResource;
  readonly sharer: Pick<ShownShare['sharer'], 'id' | 'displayName'>;
};

function toRecord(shown: Shown, state: ShareRecord['state'] = null): ShareRecord {
  const { share, sharer, receiver, group, resource } = shown;
  return {
    id: share.id,
    kind: resource.kind,
    ...detailsOf(resource),
    shared_by: { id: sharer.id, display_name: sharer.displayName },
    shared_with:
      group === null
        ? { kind: 'user', id: receiver?.id ?? '', display_name: receiver?.displayName ?? '' }
        : { kind: 'group', id: group.id, display_name: group.name },
    created_at: share.createdAt,
    state,
  };
}

/** What its kind shows of a thing. */
function detailsOf(resource: SharedResource): Pick<ShareRecord, 'binding' | 'connector' | 'mcp_server'> {
  const none = { binding: null, connector: null, mcp_server: null };
  if (resource.kind === 'connector') {
    const { id, fqn, title, version, hosts, operationCount, updatedAt } = resource.row;
    const shown = { id, fqn, title, version, hosts: JSON.parse(hosts), operation_count: operationCount };
    return { ...none, connector: { ...shown, revision: updatedAt } };
  }
  if (resource.kind === 'mcp_server') {
    const { id, name, updatedAt: revision } = resource.row;
    const { mode, url, command } = configurationOf(resource.row);
    return { ...none, mcp_server: { id, name, mode, url, command: [...command], revision } };
  }
  const binding = toBindingRecord(resource.row);
  const { id, host, scheme, emit_mechanism: mechanism, allowed_hosts: allowed, effect = null } = binding;
  const shown = { id, host, scheme, emit_mechanism: mechanism, allowed_hosts: [...allowed], effect };
  return { ...none, binding: { ...shown, revision: binding.updated_at } };
}

interface KindWords {
  readonly name: string;
  readonly field: string;
  readonly list: string;
  readonly scope: Scope;
}

const WORDS: Readonly<Record<ShareKind, KindWords>> = {
  host_binding: {
    name: 'host binding',
    field: 'binding_id',
    list: 'GET /v1/host-bindings',
    scope: 'host-bindings:write',
  },
  connector: { name: 'connector', field: 'connector_id', list: 'GET /v1/connectors', scope: 'connectors:write' },
  mcp_server: { name: 'MCP server', field: 'mcp_server_id', list: 'GET /v1/mcp-servers', scope: 'mcp-servers:write' },
};

/** A personal token gives and takes only kinds of things that it may create. */
function mayShare(caller: Caller, kind: ShareKind): Result<void, ApiError> {
  const { name, scope } = WORDS[kind];
  return requireScope(caller, scope, `the share is of a ${name}`);
}

function kindOf({ connector_id: connectorId, mcp_server_id: serverId }: ShareInput): ShareKind {
  if (connectorId !== undefined) return 'connector';
  return serverId === undefined ? 'host_binding' : 'mcp_server';
}

function noThing(kind: ShareKind, id: string): ApiError {
  const { name, list } = WORDS[kind];
  return apiError('not_found', `there is no ${name} ${id}: list them with ${list}`);
}

function noShare(id: string): ApiError {
  return apiError('not_found', `there is no share ${id}: list them with GET /v1/shares`);
}

/** The value of a borrowed secret is on the machine of its owner. */
async function borrowProblem({ database }: ServiceContext, resource: SharedResource): Promise<FieldProblem | null> {
  const paths = await secretPaths(database, resource);
  const { ownerId } = resource.row;
  const sources = await Promise.all(paths.map((path) => findSourceAt(database, { ownerId, path })));
  if (!sources.some((source) => source?.source.kind === BORROWED_KIND)) return null;
  const message = 'is a borrowed secret, which only the machine of its owner gives: store one, or have it minted';
  return { field: resource.kind === 'host_binding' ? 'credential_ref' : 'credential', message };
}

/** The secrets that it uses. Those of an MCP server are its own, and never borrowed. */
async function secretPaths(database: ServiceContext['database'], { kind, row }: SharedResource): Promise<string[]> {
  if (kind === 'mcp_server') return [];
  if (kind === 'host_binding') return credentialPaths(toBindingRecord(row));
  const found = await findConnector(database, [row.ownerId], row.id);
  return found?.credential === null || found === null ? [] : [found.credential.path];
}

function notSharable({ kind, row }: SharedResource, { field, message }: FieldProblem): ApiError {
  const { name, field: named } = WORDS[kind];
  const text = `the ${name} ${row.id} cannot be shared: ${field} ${message}`;
  return apiError('invalid_input', text, {
    fields: [{ field: named, message: `cannot be shared: ${field} ${message}` }],
  });
}

function noReceiver(field: string, what: string, list: string): ApiError {
  return fieldError(field, `is not that of ${what} of your enterprise: list groups with ${list}, or ask an admin`);
}

function sharedAlready({ id }: ShareRow): ApiError {
  return apiError('conflict', `it is shared so already, as ${id}`, { share_id: id });
}

function changedSince(id: string): ApiError {
  return apiError('conflict', `what ${id} shares was changed after you read it: list it again with GET /v1/shares`);
}

function usedAnyway({ share, sharer }: Received): ApiError {
  const message = `${share.id} stays in use, because an admin shares it: ask ${sharer.displayName} to end it, or create one of your own for the same host or name, which comes first`;
  return apiError('conflict', message);
}

function fieldError(field: string, message: string): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}
