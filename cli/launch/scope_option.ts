import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import { CliError, EXIT } from '../exit_codes.ts';

export interface ScopeOptions {
  readonly scope?: readonly string[];
}

/** What the session does less with minted secrets, from `--scope`. */
export async function readScopes({ scope = [] }: ScopeOptions): Promise<readonly SecretScope[]> {
  if (scope.length === 0) return [];
  // Loaded on use, so that a run without it starts faster: it has the schemas of all sources.
  const { parseScopes } = await import('../../shared/wire/sources/narrowing.ts');
  const scopes = parseScopes(scope);
  if (scopes.ok) return scopes.value;
  throw new CliError(EXIT.notStarted, `--scope ${scopes.error.message}`);
}

/** The field of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses it, and does not run the session with more. */
export function scopesField(scopes: readonly SecretScope[] = []): object {
  if (scopes.length === 0) return {};
  return { scopes: scopes.map(({ path, narrowing }) => ({ reference: formatVaultReference(path), narrowing })) };
}
