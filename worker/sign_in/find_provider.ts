import type { SignInContext } from './sign_in_context.ts';
import type { AuthProvider } from './provider.ts';
import { enterpriseProvider } from './providers/enterprise_oidc.ts';

/** Finds a provider by name: a configured one, or an enterprise's own, whose name is the enterprise's id. */
export async function findProvider(context: SignInContext, name: string): Promise<AuthProvider | null> {
  return context.signIn.providers.get(name) ?? enterpriseProvider(context, name);
}
