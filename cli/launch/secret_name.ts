import { mayBeCredential } from '../../shared/model/credential_shapes.ts';
import { err, type Result } from '../../shared/model/result.ts';
import { parseOwnVaultPath, VAULT_SCHEME } from '../../shared/model/vault_path.ts';

/** The vault path of an entry. A value in place of a path is refused without being shown. */
export function parseSecretName(text: string): Result<string, string> {
  const name = text.startsWith(VAULT_SCHEME) ? text.slice(VAULT_SCHEME.length) : text;
  if (name.split('/').some(mayBeCredential)) {
    return err(
      'looks like a credential, or has a part of more than 32 characters, so it is not shown: name the path of a stored secret, such as user/github-work',
    );
  }
  const path = parseOwnVaultPath(name);
  return path.ok ? path : err(path.error.message);
}
