import {
  formatVaultReference,
  parseSharedPath,
  type SharedCredential,
  sharedVaultPath,
} from '../../../shared/model/vault_path.ts';
import { admitShared, type ShareStanding, standingOf } from '../../../shared/sharing/share_rules.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { type Caller, ownerName, visibleOwners } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { findHostBindingsOn } from '../../store/host_bindings.ts';
import { listReceivedShares, type ReceivedShare } from '../../store/people/shares.ts';
import {
  findReferredSecret,
  listReferredSecrets,
  type SecretRow,
  type SecretSummary,
  type VaultPlace,
} from '../../store/secrets.ts';
import { credentialPaths, toRecord } from '../bindings/host_bindings.ts';

/** A user of an enterprise. */
type User = Pick<Caller, 'userId' | 'enterpriseId'>;

/** A share with what it is to its receiver. */
export type Received = ReceivedShare & { readonly state: ShareStanding | 'overridden' };

/** What colleagues share with a user, oldest first. `hosts` limits it to bindings of these patterns. */
export async function listReceived(
  context: ServiceContext,
  user: User,
  hosts?: readonly string[],
): Promise<readonly Received[]> {
  const rows = await listReceivedShares(context.database, user, { hosts });
  if (rows.length === 0) return [];
  const patterns = [...new Set(rows.map(({ binding }) => binding.host))];
  const own = await findHostBindingsOn(context.database, visibleOwners(user), patterns);
  const standing = new Map(rows.map((row) => [row, standingOf(heldAs(row))]));
  const admitted = admitShared(
    own.map((row) => ({ ...row, owner: ownerName(row.ownerId) })),
    rows.filter((row) => standing.get(row) === 'in_force').map((row) => ({ ...row.binding, row })),
  );
  const used = new Set(admitted.map(({ row }) => row));
  return rows.map((row) => {
    const state = standing.get(row) ?? 'paused';
    return { ...row, state: state === 'in_force' && !used.has(row) ? 'overridden' : state };
  });
}

function heldAs({ sharer, binding, acceptedRevision }: ReceivedShare) {
  return { sharer, binding: toRecord(binding), revision: binding.updatedAt, acceptedRevision };
}

/** A shared binding as the policy of its receiver has it, and where its credentials are. */
export interface SharedBinding {
  readonly record: HostBindingRecord;
  readonly sharedBy: string;
  readonly credentials: readonly { readonly path: string; readonly ownerId: string; readonly ownerPath: string }[];
}

/** The shared bindings that a user's requests use. */
export async function listSharedBindings(
  context: ServiceContext,
  user: User,
  hosts?: readonly string[],
): Promise<readonly SharedBinding[]> {
  const received = await listReceived(context, user, hosts);
  return received.filter(({ state }) => state === 'in_force').map(toShared);
}

const PARTS: readonly SharedCredential['part'][] = ['credential', 'session-token'];

/** The owner's paths are replaced: their names are the owner's own, and another's secret of the same name is not meant. */
function toShared({ binding: row }: Received): SharedBinding {
  const own = toRecord(row);
  const credentials = credentialPaths(own).map((ownerPath, index) => ({
    path: sharedVaultPath({ bindingId: row.id, part: PARTS[index] ?? 'credential' }),
    ownerId: row.ownerId,
    ownerPath,
  }));
  const [credential, token] = credentials.map(({ path }) => formatVaultReference(path));
  const record = {
    ...own,
    owner: 'enterprise' as const,
    credential_ref: credential ?? '',
    ...(token !== undefined && { session_token_ref: token }),
  };
  return { record, sharedBy: row.ownerId, credentials };
}

/** The secrets of shared bindings, each with the path by which its receiver's sidecar asks for it. */
export async function findSharedSecrets(
  context: ServiceContext,
  bindings: readonly SharedBinding[],
): Promise<readonly { readonly path: string; readonly row: SecretSummary }[]> {
  const credentials = bindings.flatMap((binding) => binding.credentials);
  if (credentials.length === 0) return [];
  const owners = [...new Set(credentials.map(({ ownerId }) => ownerId))];
  const rows = new Map((await listReferredSecrets(context.database, owners)).map((row) => [keyOf(row), row]));
  return credentials.flatMap(({ path, ownerId, ownerPath }) => {
    const row = rows.get(keyOf({ ownerId, path: ownerPath }));
    return row === undefined ? [] : [{ path, row }];
  });
}

function keyOf({ ownerId, path }: VaultPlace): string {
  return `${ownerId} ${path}`;
}

/** The secret behind a path of a shared binding, if the binding is in the user's policy now. */
export async function findSharedSecret(context: ServiceContext, user: User, path: string): Promise<SecretRow | null> {
  const named = parseSharedPath(path);
  if (named === null) return null;
  const rows = await listReceivedShares(context.database, user, { bindingId: named.bindingId });
  const host = rows[0]?.binding.host;
  if (host === undefined) return null;
  const bindings = await listSharedBindings(context, user, [host]);
  const shared = bindings.find(({ record }) => record.id === named.bindingId);
  const credential = shared?.credentials.find((each) => each.path === path);
  if (credential === undefined) return null;
  return findReferredSecret(context.database, { ownerId: credential.ownerId, path: credential.ownerPath });
}
