import { err, ok, type Result } from '../../shared/model/result.ts';
import { CODEHOST } from './providers/codehost.ts';
import { GENERAL } from './providers/general.ts';
import type { AuthProvider, ProviderEntry, ProviderInput } from './provider.ts';

/** Every provider that can be set up. Another one is a file beside these, and an entry here (docs/sign-in.md). */
const PROVIDERS: readonly ProviderEntry[] = [GENERAL, CODEHOST];

/** The providers that are set up, by name. Refuses with a sentence when the variables of one cannot be used. */
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
