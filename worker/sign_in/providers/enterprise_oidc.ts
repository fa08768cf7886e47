import { parseEmail } from '../../../shared/model/email.ts';
import { ok } from '../../../shared/model/result.ts';
import { isId } from '../../../shared/wire/ids.ts';
import type { SignInContext } from '../sign_in_context.ts';
import { type EnterpriseOidcRow, findEnterpriseOidc, listDomains } from '../../store/enterprise_settings.ts';
import { oidcProvider } from '../oidc.ts';
import type { AuthProvider } from '../provider.ts';

/** Where the secret of an enterprise's client is sealed. */
export function oidcSealPlace(enterpriseId: string) {
  return { owner: enterpriseId, path: 'sign-in/oidc-client-secret', version: 1 };
}

/**
 * The enterprise's own OpenID provider, under the enterprise's id as its name; null when there is none. What it says is
 * believed of the enterprise's own domains alone: whoever runs it could otherwise say to be anybody.
 */
export async function enterpriseProvider(context: SignInContext, name: string): Promise<AuthProvider | null> {
  const row = isId('ent', name) ? await findEnterpriseOidc(context.database, name) : null;
  if (row === null) return null;
  const provider = await openProvider(context, row);
  return {
    ...provider,
    async exchange(callback) {
      const identity = await provider.exchange(callback);
      if (!identity.ok || !identity.value.emailVerified) return identity;
      const domains = await listDomains(context.database, row.enterpriseId);
      const domain = parseEmail(identity.value.email)?.domain;
      const emailVerified = domain !== undefined && domains.includes(domain);
      return ok({ ...identity.value, emailVerified });
    },
  };
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
