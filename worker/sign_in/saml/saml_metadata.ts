import { exportSPKI, importX509 } from 'jose';
import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import {
  childrenOf,
  DSIG,
  everyElement,
  isNamed,
  METADATA,
  onlyChild,
  parseXml,
  quoteXml,
  SAML_METADATA,
  SAMLP,
  type XmlElement,
} from './saml_xml.ts';

const HTTP_REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
export const HTTP_POST = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST';
const MIN_KEY_BITS = 2048;
const MAX_CERTIFICATES = 10;
const MAX_ENTITY_ID = 1024;

/** A SAML provider, as its metadata describe it. */
export interface SamlProvider {
  readonly entityId: string;
  /** Where the browser takes our request. */
  readonly ssoUrl: string;
  readonly certificates: readonly SamlCertificate[];
}

interface SamlCertificate {
  /** SHA-256 of the certificate, in lower-case hexadecimal. */
  readonly fingerprint: string;
  /** SPKI in PEM. */
  readonly publicKey: string;
}

/**
 * Reads the metadata of one identity provider (SAML 2.0 Metadata). The error says what is wrong with them. Metadata are
 * trusted because an owner of the enterprise gave them or their URL: their own signature is not checked.
 */
export async function readMetadata(text: string): Promise<Result<SamlProvider, string>> {
  const parsed = parseXml(text, SAML_METADATA);
  if (!parsed.ok) return parsed;
  const described = onlyEntity(parsed.value);
  if (!described.ok) return described;
  const entity = described.value;
  const entityId = entity.attributes.get('entityID') ?? '';
  if (entityId === '' || entityId.length > MAX_ENTITY_ID || !/^[\x21-\x7e]+$/.test(entityId))
    return err('has no entityID of 1 to 1024 ASCII characters without spaces');
  const provider = onlyChild(entity, METADATA, 'IDPSSODescriptor');
  if (provider === null) return err('does not describe exactly one identity provider (IDPSSODescriptor)');
  if (!(provider.attributes.get('protocolSupportEnumeration') ?? '').split(/\s+/).includes(SAMLP))
    return err('does not offer SAML 2.0');
  const ssoUrl = childrenOf(provider, METADATA, 'SingleSignOnService')
    .find(({ attributes }) => attributes.get('Binding') === HTTP_REDIRECT)
    ?.attributes.get('Location');
  if (ssoUrl === undefined || !URL.canParse(ssoUrl))
    return err('has no SingleSignOnService with the HTTP-Redirect binding');
  const certificates = await readCertificates(provider);
  return certificates.ok ? ok({ entityId, ssoUrl, certificates: certificates.value }) : certificates;
}

/** The entity that a document describes, also if it is the only one of a list, as some providers write it. */
function onlyEntity(root: XmlElement): Result<XmlElement, string> {
  const entities = [...everyElement(root)].filter((element) => isNamed(element, METADATA, 'EntityDescriptor'));
  const [entity, ...others] = entities;
  const isKnown = isNamed(root, METADATA, 'EntityDescriptor') || isNamed(root, METADATA, 'EntitiesDescriptor');
  if (!isKnown || entity === undefined) return err('is not one EntityDescriptor of SAML 2.0 metadata');
  return others.length === 0
    ? ok(entity)
    : err(`describes ${entities.length} entities: give the metadata of your provider alone`);
}

async function readCertificates(provider: XmlElement): Promise<Result<SamlCertificate[], string>> {
  const texts = childrenOf(provider, METADATA, 'KeyDescriptor')
    .filter(({ attributes }) => (attributes.get('use') ?? 'signing') === 'signing')
    .flatMap((descriptor) => [...everyElement(descriptor)])
    .filter((element) => isNamed(element, DSIG, 'X509Certificate'))
    .map((element) => (element.text ?? '').replaceAll(/\s/g, ''));
  const different = [...new Set(texts)];
  if (different.length === 0 || different.length > MAX_CERTIFICATES)
    return err(`has ${different.length} signing certificates: 1 to ${MAX_CERTIFICATES} are needed`);
  const read = await Promise.all(different.map((text) => readCertificate(text)));
  const known = read.filter((certificate) => certificate !== null);
  return known.length === read.length
    ? ok(known)
    : err(`has a signing certificate that is not RSA with ${MIN_KEY_BITS} bits or more`);
}

const rsaKey = z.object({ modulusLength: z.number() });

async function readCertificate(base64: string): Promise<SamlCertificate | null> {
  try {
    const der = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const pem = `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----`;
    const key = await importX509(pem, 'RS256', { extractable: true });
    if (rsaKey.parse(key.algorithm).modulusLength < MIN_KEY_BITS) return null;
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', der));
    const fingerprint = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return { fingerprint, publicKey: await exportSPKI(key) };
  } catch (error) {
    // Whatever cannot be read as a certificate with an RSA key.
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

/** Our own addresses for an enterprise's provider. */
export interface ServiceProvider {
  /** The URL of our metadata. */
  readonly entityId: string;
  readonly acsUrl: string;
}

/** Our addresses, beside the callback URL of the enterprise's provider. */
export function serviceProviderOf(redirectURL: string): ServiceProvider {
  const base = redirectURL.replace(/\/callback$/, '');
  return { entityId: `${base}/metadata`, acsUrl: `${base}/acs` };
}

/** Our metadata, which a provider imports. */
export function writeMetadata({ entityId, acsUrl }: ServiceProvider): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<md:EntityDescriptor xmlns:md="${METADATA}" entityID="${quoteXml(entityId)}">`,
    `  <md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true" protocolSupportEnumeration="${SAMLP}">`,
    '    <md:NameIDFormat>urn:oasis:names:tc:SAML:2.0:nameid-format:persistent</md:NameIDFormat>',
    '    <md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress</md:NameIDFormat>',
    `    <md:AssertionConsumerService Binding="${HTTP_POST}" Location="${quoteXml(acsUrl)}" index="0" isDefault="true"/>`,
    '  </md:SPSSODescriptor>',
    '</md:EntityDescriptor>',
    '',
  ].join('\n');
}
