import type { ProvidersReply } from '../../shared/wire/auth.ts';
import type { SignInContext } from './sign_in_context.ts';

/** The configured ways to sign in, in the format of pages. */
export function listMethods(context: Pick<SignInContext, 'signIn'>): ProvidersReply {
  const providers = Array.from(context.signIn.providers.values(), ({ name, title }) => ({
    name,
    title,
    login_url: `/auth/${name}/login`,
  }));
  return { providers, password: context.signIn.mail !== null };
}
