import type { ServiceContext } from '../../kernel/service_context.ts';
import { listReferredSecrets, type SecretSummary, type VaultPlace } from '../../store/secrets.ts';

/** A credential of something shared: where its owner has it, and the path by which its receiver's sidecar asks for it. */
export interface SharedPlace {
  readonly path: string;
  readonly ownerId: string;
  readonly ownerPath: string;
}

/** The secrets at these places, each with the receiver's path. One secret may be behind several. */
export async function listSecretsAt(
  { database }: ServiceContext,
  places: readonly SharedPlace[],
): Promise<readonly { readonly path: string; readonly row: SecretSummary }[]> {
  if (places.length === 0) return [];
  const owners = [...new Set(places.map(({ ownerId }) => ownerId))];
  const rows = new Map((await listReferredSecrets(database, owners)).map((row) => [keyOf(row), row]));
  return places.flatMap(({ path, ownerId, ownerPath }) => {
    const row = rows.get(keyOf({ ownerId, path: ownerPath }));
    return row === undefined ? [] : [{ path, row }];
  });
}

function keyOf({ ownerId, path }: VaultPlace): string {
  return `${ownerId} ${path}`;
}
