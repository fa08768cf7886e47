import { toBase64 } from '../../kernel/encoding.ts';
import { HTTP_POST, type SamlProvider, type ServiceProvider } from './saml_metadata.ts';
import { quoteXml, SAML, SAMLP } from './saml_xml.ts';

interface AuthnRequest {
  readonly id: string;
  readonly relayState: string;
  readonly issuedAt: string;
}

/** The URL at the provider with our request (SAML 2.0 Bindings section 3.4, HTTP-Redirect). */
export async function requestUrl(
  { ssoUrl }: Pick<SamlProvider, 'ssoUrl'>,
  { entityId, acsUrl }: ServiceProvider,
  { id, relayState, issuedAt }: AuthnRequest,
): Promise<string> {
  const request =
    `<samlp:AuthnRequest xmlns:samlp="${SAMLP}" xmlns:saml="${SAML}" ID="${id}" Version="2.0" IssueInstant="${issuedAt}"` +
    ` Destination="${quoteXml(ssoUrl)}" AssertionConsumerServiceURL="${quoteXml(acsUrl)}" ProtocolBinding="${HTTP_POST}">` +
    `<saml:Issuer>${quoteXml(entityId)}</saml:Issuer></samlp:AuthnRequest>`;
  const deflated = new Blob([request]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const url = new URL(ssoUrl);
  url.searchParams.set('SAMLRequest', toBase64(new Uint8Array(await new Response(deflated).arrayBuffer())));
  url.searchParams.set('RelayState', relayState);
  return url.href;
}
