import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { isId } from '../../../shared/wire/ids.ts';
import { serviceProviderOf, writeMetadata } from '../../sign_in/saml/saml_metadata.ts';
import { receiveResponse } from '../../sign_in/saml/receive_response.ts';
import type { AppContext } from '../http/app_env.ts';
import { refusalPage } from './auth_refusal.ts';
import { publicOrigin } from './public_origin.ts';

/** `POST /auth/{provider}/acs`: a form of the provider's page. It reads and sets no cookie. */
export async function receiveSamlResponse(c: AppContext): Promise<Response> {
  const where = enterpriseCallback(c);
  if (!where.ok) return refusalPage(c, where.error);
  const { SAMLResponse: samlResponse, RelayState: relayState } = await c.req.parseBody();
  const { enterpriseId, redirectURL } = where.value;
  const posted = {
    enterpriseId,
    redirectURL,
    clientAddress: c.get('clientAddress'),
    samlResponse: typeof samlResponse === 'string' ? samlResponse : '',
    relayState: typeof relayState === 'string' ? relayState : '',
  };
  const received = await receiveResponse(c.get('context'), posted);
  if (!received.ok) return refusalPage(c, received.error);
  const query = new URLSearchParams({ state: posted.relayState, code: received.value.code });
  return c.redirect(`/auth/${enterpriseId}/callback?${query.toString()}`, 303);
}

/** `GET /auth/{provider}/metadata`: the same for every id, so that it does not tell which enterprises exist. */
export async function getSamlMetadata(c: AppContext): Promise<Response> {
  const where = enterpriseCallback(c);
  if (!where.ok) return refusalPage(c, where.error);
  const metadata = writeMetadata(serviceProviderOf(where.value.redirectURL));
  return c.body(metadata, 200, { 'content-type': 'application/samlmetadata+xml' });
}

/** The enterprise in the path, and the callback URL of its provider under the host name that the browser called. */
function enterpriseCallback(
  c: AppContext,
): Result<{ readonly enterpriseId: string; readonly redirectURL: string }, ApiError> {
  const enterpriseId = c.req.param('provider') ?? '';
  if (!isId('ent', enterpriseId)) {
    return err(apiError('not_found', 'only an enterprise has a SAML provider: use the enterprise’s id'));
  }
  const origin = publicOrigin(c);
  return origin.ok ? ok({ enterpriseId, redirectURL: `${origin.value}/auth/${enterpriseId}/callback` }) : origin;
}
