import { ok } from '../../../shared/model/result.ts';
import { oidcProvider } from '../oidc.ts';
import type { ProviderEntry } from '../provider.ts';
import { clientVariables, urlVariable } from '../provider_client.ts';

/** The general provider: whichever OpenID provider `GENERAL_OAUTH_ISSUER` names (specification section 5). */
export const GENERAL: ProviderEntry = {
  name: 'general',
  configure(input) {
    const client = clientVariables(input, 'GENERAL_OAUTH');
    if (!client.ok || client.value === null) return client.ok ? ok(null) : client;
    const issuer = urlVariable(input, 'GENERAL_OAUTH_ISSUER', null);
    if (!issuer.ok) return issuer;
    // As it is written: an issuer's name is compared with what its documents say.
    const written = input.variables['GENERAL_OAUTH_ISSUER']?.reveal() ?? issuer.value;
    const { outbound, isLocal, issuers } = input;
    const where = { name: 'general', title: 'Single sign-on', issuer: written, outbound, isLocal, issuers };
    return ok(oidcProvider({ ...client.value, ...where }));
  },
};
