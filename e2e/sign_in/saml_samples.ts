import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { generate } from 'selfsigned';
import { SignedXml } from 'xml-crypto';

const C14N = 'http://www.w3.org/2001/10/xml-exc-c14n#';
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';
const RSA_SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256';
const SHA256 = 'http://www.w3.org/2001/04/xmlenc#sha256';
const NAMESPACES =
  'xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"';

/** A key of an identity provider. */
export interface SamlKey {
  readonly privateKey: string;
  readonly publicKey: string;
  /** In base64, for metadata; empty for a key without one. */
  readonly certificate: string;
}

export function newSamlKey(bits = 2048): SamlKey {
  const pair: { publicKey: KeyObject; privateKey: KeyObject } = generateKeyPairSync('rsa', { modulusLength: bits });
  return {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: pair.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    certificate: '',
  };
}

export async function newCertifiedKey(keySize: 1024 | 2048 = 2048): Promise<SamlKey> {
  const made = await generate([{ name: 'commonName', value: 'idp.acme.test' }], { keySize, algorithm: 'sha256' });
  const certificate = made.cert.replaceAll(/-----[^-]+-----|\s/g, '');
  return { privateKey: made.private, publicKey: made.public, certificate };
}

export interface SampleResponse {
  readonly issuer: string;
  readonly acsUrl: string;
  readonly audience: string;
  readonly requestId: string;
  readonly nowMs: number;
  readonly nameId: string;
  readonly format: string;
  readonly email: string;
}

export const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent';

const at = (ms: number) => new Date(ms).toISOString();

/** An assertion as common providers write it. */
export function sampleAssertion(of: SampleResponse, id = '_assertion'): string {
  const [now, until] = [at(of.nowMs), at(of.nowMs + 300_000)];
  return (
    `<saml:Assertion ${NAMESPACES} ID="${id}" Version="2.0" IssueInstant="${now}"><saml:Issuer>${of.issuer}</saml:Issuer>` +
    `<saml:Subject><saml:NameID Format="${of.format}">${of.nameId}</saml:NameID>` +
    `<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData ` +
    `InResponseTo="${of.requestId}" NotOnOrAfter="${until}" Recipient="${of.acsUrl}"/></saml:SubjectConfirmation></saml:Subject>` +
    `<saml:Conditions NotBefore="${now}" NotOnOrAfter="${until}"><saml:AudienceRestriction><saml:Audience>${of.audience}` +
    `</saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant="${now}" SessionIndex="_s">` +
    `<saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef>` +
    `</saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement><saml:Attribute Name="email">` +
    `<saml:AttributeValue>${of.email}</saml:AttributeValue></saml:Attribute></saml:AttributeStatement></saml:Assertion>`
  );
}

/** A response around an assertion. */
export function sampleResponse(of: SampleResponse, inside: string): string {
  return (
    `<samlp:Response ${NAMESPACES} ID="_response" Version="2.0" IssueInstant="${at(of.nowMs)}" Destination="${of.acsUrl}" ` +
    `InResponseTo="${of.requestId}"><saml:Issuer>${of.issuer}</saml:Issuer><samlp:Status><samlp:StatusCode ` +
    `Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>${inside}</samlp:Response>`
  );
}

interface SigningOptions {
  /** The id of the element to sign. */
  readonly id?: string;
  readonly algorithm?: string;
  readonly digest?: string;
  readonly canonicalization?: string;
  readonly transforms?: readonly string[];
}

/** Signs the element with this id; the signature follows its Issuer. */
export function signXml(text: string, key: SamlKey, options: SigningOptions = {}): string {
  const { id = '_assertion', canonicalization = C14N, transforms = [ENVELOPED, C14N] } = options;
  const signer = new SignedXml({
    privateKey: key.privateKey,
    signatureAlgorithm: options.algorithm ?? RSA_SHA256,
    canonicalizationAlgorithm: canonicalization,
  });
  const xpath = `//*[@ID='${id}']`;
  signer.addReference({ xpath, transforms: [...transforms], digestAlgorithm: options.digest ?? SHA256 });
  signer.computeSignature(text, {
    prefix: 'ds',
    location: { reference: `${xpath}/*[local-name(.)='Issuer']`, action: 'after' },
  });
  return signer.getSignedXml();
}

/** The metadata of a provider. */
export function sampleMetadata(entityId: string, ssoUrl: string, keys: readonly SamlKey[]): string {
  const descriptors = keys.map(
    ({ certificate }) =>
      `<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data>` +
      `<ds:X509Certificate>${certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`,
  );
  return (
    `<?xml version="1.0"?><md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${entityId}">` +
    `<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${descriptors.join('')}` +
    `<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${ssoUrl}"/>` +
    `</md:IDPSSODescriptor></md:EntityDescriptor>`
  );
}
