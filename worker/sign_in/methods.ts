import type { ProvidersReply } from '../../shared/wire/auth.ts';
import type { SignInContext } from './sign_in_context.ts';

/** The ways to sign in that are set up, as pages show them. */
export function listMethods(context: Pick<SignInContext, 'signIn'>): ProvidersReply {
  const providers = Array.from(context.signIn.providers.values(), ({ name, title }) => ({
    name,
    title,
    login_url: `/auth/${name}/login`,
  }));
  return { providers, password: context.signIn.mail !== null };
}
