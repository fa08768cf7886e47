import {
  formatVaultReference,
  parseSharedPath,
  type SharedCredential,
  sharedVaultPath,
} from '../../../shared/model/vault_path.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { HostBindingRow } from '../../store/host_bindings.ts';
import { listReceivedShares } from '../../store/people/shares.ts';
import { findReferredSecret, type SecretRow, type SecretSummary } from '../../store/secrets.ts';
import { credentialPaths, toRecord } from '../bindings/host_bindings.ts';
import { listReceived, type ShareUser } from './received.ts';
import { listSecretsAt, type SharedPlace } from './shared_secrets.ts';

/** A shared binding as the policy of its receiver has it, and where its credentials are. */
export interface SharedBinding {
  readonly record: HostBindingRecord;
  readonly sharedBy: string;
  readonly credentials: readonly SharedPlace[];
}

/** The shared bindings that a user's requests use. */
export async function listSharedBindings(
  context: ServiceContext,
  user: ShareUser,
  hosts?: readonly string[],
): Promise<readonly SharedBinding[]> {
  const received = await listReceived(context, user, { kind: 'host_binding', hosts });
  return received.flatMap(({ state, resource }) =>
    state === 'in_force' && resource.kind === 'host_binding' ? toShared(resource.row) : [],
  );
}

const PARTS: readonly SharedCredential['part'][] = ['credential', 'session-token'];

/** The owner's paths are replaced: their names are the owner's own, and another's secret of the same name is not meant. */
function toShared(row: HostBindingRow): SharedBinding {
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
  return listSecretsAt(
    context,
    bindings.flatMap((binding) => binding.credentials),
  );
}

/** The secret behind a path of a shared binding, if the binding is in the user's policy now. */
export async function findSharedSecret(
  context: ServiceContext,
  user: ShareUser,
  path: string,
): Promise<SecretRow | null> {
  const named = parseSharedPath(path);
  if (named === null) return null;
  const rows = await listReceivedShares(context.database, user, { resourceId: named.bindingId });
  const host = rows[0]?.binding?.host;
  if (host === undefined) return null;
  const bindings = await listSharedBindings(context, user, [host]);
  const shared = bindings.find(({ record }) => record.id === named.bindingId);
  const credential = shared?.credentials.find((each) => each.path === path);
  if (credential === undefined) return null;
  return findReferredSecret(context.database, { ownerId: credential.ownerId, path: credential.ownerPath });
}
