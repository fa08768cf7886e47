import { ok } from '../../../shared/model/result.ts';
import { oidcProvider } from '../oidc.ts';
import type { ProviderEntry } from '../provider.ts';
import { clientVariables, urlVariable } from '../provider_client.ts';

/** The general provider: the OpenID provider named by `GENERAL_OAUTH_ISSUER` (specification section 5). */
export const GENERAL: ProviderEntry = {
  name: 'general',
  configure(input) {
    const client = clientVariables(input, 'GENERAL_OAUTH');
    if (!client.ok || client.value === null) return client.ok ? ok(null) : client;
    const issuer = urlVariable(input, 'GENERAL_OAUTH_ISSUER', null);
    if (!issuer.ok) return issuer;
    // Unchanged, because the name is compared with the issuer in its documents.
    const written = input.variables['GENERAL_OAUTH_ISSUER']?.reveal() ?? issuer.value;
    const { outbound, isLocal, issuers } = input;
    const where = { name: 'general', title: 'Single sign-on', issuer: written, outbound, isLocal, issuers };
    return ok(oidcProvider({ ...client.value, ...where }));
  },
};
