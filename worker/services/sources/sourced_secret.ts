import type { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { type SecretSource, secretSource } from '../../../shared/wire/sources/source_table.ts';
import { ownerName } from '../../kernel/caller.ts';
import type { AuditDraft } from '../../kernel/commit.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { SealPlace } from '../../kernel/vault.ts';
import type { SourcedSecret, SourceRow } from '../../store/sources/secret_sources.ts';
import { configured } from './source_table.ts';

export function sourceOf({ config }: Pick<SourceRow, 'config'>): SecretSource {
  return secretSource.parse(JSON.parse(config));
}

type Placed = Pick<SourcedSecret['secret'], 'ownerId' | 'path' | 'version'>;

/** Where the key of a source is sealed. A vault path has no "#". */
export function keyPlace({ ownerId, path, version }: Placed): SealPlace {
  return { owner: ownerId, path: `${path}#key`, version };
}

export function valuePlace({ secret: { ownerId, path, version } }: { readonly secret: Placed }): SealPlace {
  return { owner: ownerId, path: `${path}#value`, version };
}

/** Where is sealed what revokes a value at its provider. */
export function revocationPlace({ secret: { ownerId, path, version } }: { readonly secret: Placed }): SealPlace {
  return { owner: ownerId, path: `${path}#revocation`, version };
}

/** The key of a source. Throws if the vault cannot open it, because the row is then damaged. */
export function openSourceKey(
  context: ServiceContext,
  { secret, source }: Pick<SourcedSecret, 'secret' | 'source'>,
): Promise<Secret> {
  return openSealed(context, keyPlace(secret), source.sealedMaterial);
}

const DAMAGED = 'vault_entry_damaged';

/** Throws if the vault cannot open it. */
export async function openSealed(context: ServiceContext, place: SealPlace, sealed: string): Promise<Secret> {
  const secret = await context.vault.open(place, sealed);
  if (secret !== null) return secret;
  throw Object.assign(new Error(`the vault cannot open ${place.path}`), { code: DAMAGED });
}

/** Whether an error is that of {@link openSealed}. */
export function isDamaged(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === DAMAGED;
}

/** The longest description in the audit log. */
const MAX_DESCRIPTION = 500;

export function mintedForOf({ source: row }: SourcedSecret, source = sourceOf(row)): string {
  const text = configured(source).describe();
  return text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION)}…`;
}

export function mintEvent(
  type: AuditDraft['type'],
  { secret, source }: SourcedSecret,
  about: AuditDraft['data'],
): AuditDraft {
  return {
    type,
    actor: null,
    data: {
      'svc.control.resource': secret.id,
      'svc.control.credential_ref': formatVaultReference(secret.path),
      'svc.control.owner': ownerName(secret.ownerId),
      'svc.control.source': source.kind,
      ...about,
    },
  };
}
