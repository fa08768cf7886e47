import { OWNERS } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { localError, type LocalError } from './local_error.ts';

/** Mints what a session or a step narrows, before its command starts: so it is told at once what cannot be narrowed. */
export async function mintScopes(
  { scopes: sources, credentials }: Pick<LocalApiOptions, 'scopes' | 'credentials'>,
  { id, scopes }: { readonly id: string; readonly scopes: readonly SecretScope[] },
): Promise<Result<void, LocalError>> {
  for (const { path } of scopes) {
    const refs = OWNERS.map((owner) => ({ owner, path })).filter((ref) => credentials.isStored(ref));
    const reference = formatVaultReference(path);
    if (refs.length === 0) {
      const message = `scopes: no binding and no connector of yours uses ${reference}: compare it with svc binding list`;
      return err(localError('invalid_input', message));
    }
    const minted = await Promise.all(refs.map(async (ref) => sources.of(id).resolve(ref)));
    const refused = minted.find((each) => !each.ok);
    if (refused?.ok === false) return err(localError('invalid_input', `scopes: ${refused.error.message}`));
  }
  return ok(undefined);
}
