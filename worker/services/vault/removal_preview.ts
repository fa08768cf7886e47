import type { Owner } from '../../../shared/model/host_binding.ts';
import { connectorVaultPath } from '../../../shared/model/connector.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import { describeRemoval } from '../../../shared/report/removal.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import type { RemovalPreview, RemovalUse } from '../../../shared/wire/removals.ts';
import { sharedThing } from '../../../shared/wire/sharing/shares.ts';
import { type Caller, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { findSourceAt } from '../../store/sources/secret_sources.ts';
import { getHostBinding, listAllHostBindings } from '../bindings/host_bindings.ts';
import { getConnector, listConnectorPage } from '../connectors/connectors.ts';
import { getMcpServer } from '../mcp/mcp_servers.ts';
import { listSharePage } from '../sharing/shares.ts';
import { describeServerUse } from '../mcp/server_use.ts';
import { type CredentialUse, describeVaultUse, listUsersOf } from './credential_uses.ts';
import { findOwnSecret } from './secrets.ts';

/** What deleting a secret would do. Refuses with `not_found`, `admin_required`. */
export async function previewSecretRemoval(
  context: ServiceContext,
  caller: Caller,
  target: { readonly owner: Owner; readonly pathOrId: string },
): Promise<Result<RemovalPreview, ApiError>> {
  const row = await findOwnSecret(context, caller, target);
  if (!row.ok) return row;
  const place = { owner: ownerName(row.value.ownerId), path: row.value.path };
  const [users, use, source] = await Promise.all([
    listUsersOf(context, caller, place),
    describeVaultUse(context, caller),
    findSourceAt(context.database, row.value),
  ]);
  return ok(
    describeRemoval({
      kind: 'secret',
      name: place.path,
      owner: place.owner,
      users: users.map(toUse),
      isMinted: source !== null,
      lastUsedAt: use.lastFetchOf(place),
    }),
  );
}

/** What deleting a binding would do. Refuses with `not_found`, `admin_required`. */
export async function previewBindingRemoval(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<RemovalPreview, ApiError>> {
  const binding = await getHostBinding(context, caller, id);
  if (!binding.ok) return binding;
  const { host, owner, credential_ref: reference, sentinel } = binding.value;
  const writable = writableOwner(caller, owner);
  if (!writable.ok) return writable;
  const [bindings, connectors, use, sharedWith] = await Promise.all([
    listAllHostBindings(context, visibleOwners(caller)),
    readAll((query) => listConnectorPage(context, caller, query)),
    describeVaultUse(context, caller),
    listReceiversOf(context, caller, id),
  ]);
  const onHost = connectors.items.filter(({ active, hosts }) => active && hosts.includes(host));
  return ok(
    describeRemoval({
      kind: 'binding',
      id,
      name: host,
      owner,
      reference,
      placeholderIn: sentinel?.env ?? null,
      bindings,
      sharedWith,
      connectors: onHost.map((connector) => ({ kind: 'connector' as const, id: connector.id, name: connector.fqn })),
      lastUsedAt: use.lastFetchBy(binding.value),
    }),
  );
}

/** What removing a connector would do. Refuses with `not_found`, `admin_required`. */
export async function previewConnectorRemoval(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<RemovalPreview, ApiError>> {
  const connector = await getConnector(context, caller, id);
  if (!connector.ok) return connector;
  const { fqn, owner } = connector.value;
  const writable = writableOwner(caller, owner);
  if (!writable.ok) return writable;
  const [bindings, users, use, sharedWith] = await Promise.all([
    listAllHostBindings(context, visibleOwners(caller)),
    listUsersOf(context, caller, { owner, path: connectorVaultPath(fqn) }),
    describeVaultUse(context, caller),
    listReceiversOf(context, caller, id),
  ]);
  const bound = users.filter(({ kind }) => kind === 'binding').map(toUse);
  return ok(
    describeRemoval({
      ...factsOf(connector.value),
      users: bound,
      sharedWith,
      bindings,
      lastUsedAt: use.lastFetchBy(connector.value),
    }),
  );
}

/** The colleagues and groups with whom the caller shares something, by name. */
async function listReceiversOf(context: ServiceContext, caller: Caller, id: string): Promise<string[]> {
  const given = await readAll((query) => listSharePage(context, caller, { ...query, list: 'given' }));
  return given.items
    .filter((share) => sharedThing(share).id === id)
    .map(({ shared_with: receiver }) => receiver.display_name);
}

function factsOf({ id, fqn, owner, hosts, active, spec, credential }: ConnectorRecord) {
  const isOwn = credential.ref === `vault://${connectorVaultPath(fqn)}`;
  return {
    kind: 'connector' as const,
    id,
    name: fqn,
    owner,
    hosts,
    isActive: active,
    operations: spec.operations.map(({ name, approval }) => ({ name, needsApproval: approval === 'required' })),
    sharedReference: isOwn ? null : credential.ref,
    hasCredential: credential.state !== 'missing',
  };
}

/** What deleting an MCP server would do. Refuses with `not_found`, `admin_required`. */
export async function previewServerRemoval(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<RemovalPreview, ApiError>> {
  const server = await getMcpServer(context, caller, id);
  if (!server.ok) return server;
  const { name, owner, credentials, authorization, enabled } = server.value;
  const writable = writableOwner(caller, owner);
  if (!writable.ok) return writable;
  const lastUseOf = await describeServerUse(context, caller);
  const sharedWith = await listReceiversOf(context, caller, id);
  return ok(
    describeRemoval({
      kind: 'mcp_server',
      name,
      owner,
      credentials: credentials.filter(({ set }) => set).map((credential) => credential.name),
      isSignedIn: authorization?.state === 'ready',
      isEnabled: enabled,
      sharedWith,
      lastUsedAt: lastUseOf(server.value),
    }),
  );
}

function toUse({ kind, id, name }: CredentialUse): RemovalUse {
  return { kind, id, name };
}
