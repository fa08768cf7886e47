import { z } from 'zod';
import { err, ok } from '../../../shared/model/result.ts';
import { randomToken, sha256Base64Url } from '../../kernel/encoding.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { type EnterpriseSamlRow, findSamlAnswer, takeSamlAnswer } from '../../store/enterprise_saml.ts';
import type { AuthProvider, Identity } from '../provider.ts';
import { serviceProviderOf } from './saml_metadata.ts';
import { requestUrl } from './saml_request.ts';

const TITLE = 'your enterprise';

const storedCertificates = z.array(z.object({ fingerprint: z.string(), publicKey: z.string() }));
const storedIdentity = z.object({
  issuer: z.string(),
  subject: z.string(),
  email: z.string(),
  displayName: z.string(),
});

/** The provider's certificates. Throws if they are damaged. */
export function certificatesOf({ certificates }: Pick<EnterpriseSamlRow, 'certificates'>) {
  return storedCertificates.parse(JSON.parse(certificates));
}

export const SAML_ISSUER = 'saml:';

/** The issuer of a SAML provider's identities: never that of an OpenID provider, whose subjects are other names. */
export function samlIssuer(entityId: string): string {
  return SAML_ISSUER + entityId;
}

/**
 * An enterprise's SAML provider. The browser brings the assertion to `receiveResponse` in a form of the provider's page,
 * which comes without our cookies. It gets a code for it, and redeems the code at the callback, where its cookies are.
 */
export function samlProvider(context: ServiceContext, row: EnterpriseSamlRow): AuthProvider {
  return {
    name: row.enterpriseId,
    title: TITLE,
    async authorizationURL({ state, redirectURL }) {
      const extraState = randomToken();
      const id = requestIdOf(await sha256Base64Url(extraState));
      const request = { id, relayState: state, issuedAt: nowText(context) };
      return ok({ url: await requestUrl(row, serviceProviderOf(redirectURL), request), extraState });
    },
    async exchange({ code, extraState }) {
      const codeHash = await sha256Base64Url(code);
      const answer = await findSamlAnswer(context.database, codeHash, nowSeconds(context));
      const requestId = requestIdOf(await sha256Base64Url(extraState));
      const isOurs = answer?.enterpriseId === row.enterpriseId && answer.requestId === requestId;
      if (!isOurs || answer.identity === null) return err(refusedCode());
      const taken = await context.database.write(takeSamlAnswer(context.database, codeHash));
      const identity = storedIdentity.parse(JSON.parse(answer.identity));
      if (!taken.ok || identity.issuer !== samlIssuer(row.entityId)) return err(refusedCode());
      return ok<Identity>({ ...identity, emailVerified: true });
    },
  };
}

/** An XML id must not begin with a digit. The flow's row has the hash, the browser's cookie the value. */
export function requestIdOf(extraHash: string): string {
  return `_${extraHash}`;
}

function refusedCode() {
  return {
    reason: 'provider_refused' as const,
    message: 'the response was used already, or belongs to another browser',
  };
}
