import { err, ok, type Result } from '../../shared/model/result.ts';
import { CODEHOST } from './providers/codehost.ts';
import { GENERAL } from './providers/general.ts';
import type { AuthProvider, ProviderEntry, ProviderInput } from './provider.ts';

/** Every available provider. To add one, add a file beside these and an entry here (docs/sign-in.md). */
const PROVIDERS: readonly ProviderEntry[] = [GENERAL, CODEHOST];

/** The configured providers, by name. The error is a sentence if the variables of one are invalid. */
export function configureProviders(
  input: ProviderInput,
  entries: readonly ProviderEntry[] = PROVIDERS,
): Result<ReadonlyMap<string, AuthProvider>, string> {
  const providers = new Map<string, AuthProvider>();
  for (const entry of entries) {
    const provider = entry.configure(input);
    if (!provider.ok) return err(provider.error);
    if (provider.value !== null) providers.set(entry.name, provider.value);
  }
  return ok(providers);
}
