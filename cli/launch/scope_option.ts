import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { parseScopes, type SecretScope } from '../../shared/wire/sources/narrowing.ts';
import { CliError, EXIT } from '../exit_codes.ts';

export interface ScopeOptions {
  readonly scope?: readonly string[];
}

/** What the session does less with minted secrets, from `--scope`. */
export function readScopes({ scope = [] }: ScopeOptions): readonly SecretScope[] {
  const scopes = parseScopes(scope);
  if (scopes.ok) return scopes.value;
  throw new CliError(EXIT.notStarted, `--scope ${scopes.error.message}`);
}

/** The field of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses it, and does not run the session with more. */
export function scopesField(scopes: readonly SecretScope[] = []): object {
  if (scopes.length === 0) return {};
  return { scopes: scopes.map(({ path, narrowing }) => ({ reference: formatVaultReference(path), narrowing })) };
}
