import { parseEmail } from '../../../shared/model/email.ts';
import { ok } from '../../../shared/model/result.ts';
import { isId } from '../../../shared/wire/ids.ts';
import type { SignInContext } from '../sign_in_context.ts';
import { type EnterpriseOidcRow, findEnterpriseOidc, listDomains } from '../../store/enterprise_settings.ts';
import { findEnterpriseSaml } from '../../store/enterprise_saml.ts';
import { samlProvider } from '../saml/saml_sign_in.ts';
import { oidcProvider } from '../oidc.ts';
import type { AuthProvider } from '../provider.ts';

/** The vault place of an enterprise's client secret. */
export function oidcSealPlace(enterpriseId: string) {
  return { owner: enterpriseId, path: 'sign-in/oidc-client-secret', version: 1 };
}

/**
 * The enterprise's own provider, by OpenID Connect or SAML, named by the enterprise's id; null if there is none. It is trusted
 * only for the enterprise's own domains: otherwise whoever runs it could sign in as anybody.
 */
export async function enterpriseProvider(context: SignInContext, name: string): Promise<AuthProvider | null> {
  const provider = isId('ent', name) ? await findOwnProvider(context, name) : null;
  if (provider === null) return null;
  return {
    ...provider,
    async exchange(callback) {
      const identity = await provider.exchange(callback);
      if (!identity.ok || !identity.value.emailVerified) return identity;
      const domains = await listDomains(context.database, name);
      const domain = parseEmail(identity.value.email)?.domain;
      const emailVerified = domain !== undefined && domains.includes(domain);
      return ok({ ...identity.value, emailVerified });
    },
  };
}

async function findOwnProvider(context: SignInContext, enterpriseId: string): Promise<AuthProvider | null> {
  const oidc = await findEnterpriseOidc(context.database, enterpriseId);
  if (oidc !== null) return openProvider(context, oidc);
  const saml = await findEnterpriseSaml(context.database, enterpriseId);
  return saml === null ? null : samlProvider(context, saml);
}

async function openProvider(context: SignInContext, row: EnterpriseOidcRow): Promise<AuthProvider> {
  const { enterpriseId, issuer, clientId } = row;
  const clientSecret = await context.vault.open(oidcSealPlace(enterpriseId), row.sealedSecret);
  if (clientSecret === null)
    throw Object.assign(new Error('the vault cannot open a client secret'), { code: 'vault_entry_damaged' });
  const { outbound, local, signIn } = context;
  const where = { issuer, outbound, isLocal: local !== null, issuers: signIn.issuers };
  return oidcProvider({ name: enterpriseId, title: 'your enterprise', clientId, clientSecret, ...where });
}
