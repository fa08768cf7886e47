import type { SignInContext } from './sign_in_context.ts';
import type { AuthProvider } from './provider.ts';
import { enterpriseProvider } from './providers/enterprise_oidc.ts';

/** A provider by its name: one that is set up for everybody, or that of an enterprise, which its id names. */
export async function findProvider(context: SignInContext, name: string): Promise<AuthProvider | null> {
  return context.signIn.providers.get(name) ?? enterpriseProvider(context, name);
}
