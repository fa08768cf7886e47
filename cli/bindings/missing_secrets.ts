import type { ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { Printer } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

/** A reference that a binding uses but that is not stored, and the command that stores it. */
interface MissingSecret {
  readonly ref: string;
  readonly command: string;
}

/** Finds the references of these bindings that are not stored; the proxy answers 503 for them. */
export async function findMissingSecrets(
  client: HttpClient,
  bindings: readonly ValidHostBinding[],
): Promise<readonly MissingSecret[]> {
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage);
  const known = new Set(stored.map((secret) => `${secret.owner} ${secret.ref}`));
  const missing = new Map<string, MissingSecret>();
  for (const { owner, credential_ref, session_token_ref } of bindings) {
    for (const ref of [credential_ref, session_token_ref]) {
      if (ref === undefined || known.has(`${owner} ${ref}`)) continue;
      const flag = owner === 'personal' ? '' : ` --owner ${owner}`;
      missing.set(`${owner} ${ref}`, { ref, command: `svc secret set ${ref.replace('vault://', '')}${flag}` });
    }
  }
  return [...missing.values()];
}

/** Warns about secrets of these bindings that are not stored yet. */
export async function warnOfMissingSecrets(
  client: HttpClient,
  bindings: readonly ValidHostBinding[],
  print: Printer,
): Promise<void> {
  for (const { ref, command } of await findMissingSecrets(client, bindings)) {
    print.warn(`${ref} is not stored yet: ${command}`);
  }
}
