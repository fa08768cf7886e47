import type { SignInContext } from './sign_in_context.ts';
import type { AuthProvider } from './provider.ts';
import { enterpriseProvider } from './providers/enterprise_provider.ts';
import { parseEmail } from '../../shared/model/email.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { ServiceContext } from '../kernel/service_context.ts';
import { findEnterpriseOfDomain } from '../store/enterprise_settings.ts';
import { findOwnIssuer } from './own_issuer.ts';
import { ssoPath } from './admission.ts';

/** Finds a provider by name: a configured one, or an enterprise's own, whose name is the enterprise's id. */
export async function findProvider(context: SignInContext, name: string): Promise<AuthProvider | null> {
  return context.signIn.providers.get(name) ?? enterpriseProvider(context, name);
}

/** The enterprise whose provider signs in addresses of a domain, and its URL. Refuses with `not_found`. */
export async function findSso(
  context: ServiceContext,
  address: string,
): Promise<Result<{ readonly name: string; readonly loginUrl: string }, ApiError>> {
  const email = parseEmail(address);
  const enterprise = email === null ? null : await findEnterpriseOfDomain(context.database, email.domain);
  const issuer = enterprise === null ? null : await findOwnIssuer(context.database, enterprise.id);
  if (enterprise === null || issuer === null) {
    return err(apiError('not_found', 'no enterprise here has single sign-on for this domain: sign in another way'));
  }
  return ok({ name: enterprise.name, loginUrl: ssoPath(enterprise.id) });
}
