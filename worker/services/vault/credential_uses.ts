import type { Owner } from '../../../shared/model/host_binding.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import { type Caller, ownerId, visibleOwners } from '../../kernel/caller.ts';
import { type ReadList, readAll } from '../../kernel/read_all.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { latestBy } from '../../store/audit/audit_events.ts';
import { type CredentialUse, listCredentialUses } from '../../store/secrets.ts';
import { listSecretPage } from './secrets.ts';

export type { CredentialUse } from '../../store/secrets.ts';

type Place = Pick<SecretRecord, 'owner' | 'path'>;

/** The secrets that a caller sees, what refers to each, and when something last fetched it. */
export interface VaultUse {
  readonly secrets: ReadList<SecretRecord>;
  /** What refers to a secret, in the order of names. */
  usersOf(place: Place): readonly CredentialUse[];
  /** When a machine last fetched the secret; null if that is not among the latest releases. */
  lastFetchOf(place: Place): string | null;
  /** The same of all secrets that a binding, a connector or a server refers to. */
  lastFetchBy(user: { readonly id: string }): string | null;
}

/** Uses by others in the enterprise count only for what they share: each release names the secret's own id. */
export async function describeVaultUse(context: ServiceContext, caller: Caller): Promise<VaultUse> {
  const [secrets, uses, fetched] = await Promise.all([
    readAll((query) => listSecretPage(context, caller, query)),
    listCredentialUses(context.database, visibleOwners(caller)),
    latestBy(context.database, caller.enterpriseId, {
      type: 'control.credential.released',
      key: 'svc.control.resource',
    }),
  ]);
  const keyOf = (place: Place) => `${ownerId(caller, place.owner)} ${place.path}`;
  const times = new Map(secrets.items.map((secret) => [keyOf(secret), fetched.get(secret.id) ?? null]));
  const byPlace = Map.groupBy(uses.toSorted(byName), (use) => `${use.ownerId} ${use.path}`);
  const byUser = Map.groupBy(uses, ({ id }) => id);
  return {
    secrets,
    usersOf: (place) => byPlace.get(keyOf(place)) ?? [],
    lastFetchOf: (place) => times.get(keyOf(place)) ?? null,
    lastFetchBy: ({ id }) =>
      (byUser.get(id) ?? [])
        .map((use) => times.get(`${use.ownerId} ${use.path}`) ?? null)
        .reduce((latest, time) => (latest === null || (time !== null && time > latest) ? time : latest), null),
  };
}

/** What refers to one secret, in the order of names. */
export async function listUsersOf(
  context: ServiceContext,
  caller: Caller,
  { owner, path }: { readonly owner: Owner; readonly path: string },
): Promise<readonly CredentialUse[]> {
  const uses = await listCredentialUses(context.database, [ownerId(caller, owner)], path);
  return uses.toSorted(byName);
}

function byName(a: CredentialUse, b: CredentialUse): number {
  return a.name < b.name ? -1 : 1;
}
