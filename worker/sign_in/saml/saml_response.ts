import { err, ok, type Result } from '../../../shared/model/result.ts';
import {
  childrenOf,
  DSIG,
  everyElement,
  isNamed,
  onlyChild,
  parseXml,
  SAML,
  SAML_MESSAGE,
  SAMLP,
  type XmlElement,
} from './saml_xml.ts';
import { readSigned, type SignatureProblem } from './xml_signature.ts';

const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success';
const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
const EMAIL_ADDRESS = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
/** The attribute with the email address: the usual names, in the order of preference. */
const EMAIL_ATTRIBUTES = [
  'email',
  'mail',
  'urn:oid:0.9.2342.19200300.100.1.3',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
];
const NAME_ATTRIBUTES = [
  'displayName',
  'urn:oid:2.16.840.1.113730.3.1.241',
  'http://schemas.microsoft.com/identity/claims/displayname',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
];

/** How far the clocks of the provider and of svc may be apart. */
const SKEW_SECONDS = 60;
/** The longest time for which an assertion may be valid: its id is remembered until then. */
const MAX_VALID_SECONDS = 24 * 3600;
/** Before decoding. */
const MAX_RESPONSE_CHARACTERS = 256 * 1024;

/** Why a response signs nobody in. */
export type SamlProblem =
  | SignatureProblem
  | 'not_readable'
  | 'not_a_response'
  | 'not_success'
  | 'encrypted'
  | 'not_one_assertion'
  | 'duplicate_id'
  | 'not_signed'
  | 'other_issuer'
  | 'other_destination'
  | 'other_request'
  | 'other_recipient'
  | 'other_audience'
  | 'not_valid_now'
  | 'no_authentication'
  | 'subject_form'
  | 'subject_transient'
  | 'no_email';

/** What a response must fit. */
export interface ExpectedResponse {
  /** The id of our request, which only one browser sent. */
  readonly requestId: string;
  /** Where the response was sent: Destination and Recipient. */
  readonly acsUrl: string;
  /** Our entity id. */
  readonly audience: string;
  /** The provider's entity id. */
  readonly issuer: string;
  /** The public keys of the enterprise's own certificates, as SPKI in PEM. */
  readonly keys: readonly string[];
  readonly nowMs: number;
}

/** Whom the provider signed in. */
interface SamlSubject {
  readonly assertionId: string;
  /** Until when the assertion could be sent again. */
  readonly validUntilMs: number;
  readonly nameId: string;
  readonly email: string;
  /** Empty if the provider sent none. */
  readonly displayName: string;
}

/**
 * Reads the response of a SAML provider (SAML 2.0 Core and Profiles section 4.1.4). Everything that decides who signs in
 * is read from the text that the assertion's own signature covers. The rest of the response must fit, but is not trusted.
 */
export function readResponse(encoded: string, expected: ExpectedResponse): Result<SamlSubject, SamlProblem> {
  const text = decodeResponse(encoded);
  const parsed = text === null ? null : parseXml(text, SAML_MESSAGE);
  if (text === null || parsed === null || !parsed.ok) return err('not_readable');
  const response = parsed.value;
  const problem = responseProblem(response, expected);
  if (problem !== null) return err(problem);
  const assertion = onlyChild(response, SAML, 'Assertion');
  if (assertion === null) return err('not_one_assertion');
  const signed = readSignedAssertion(text, response, assertion, expected.keys);
  return signed.ok ? readAssertion(signed.value, expected) : signed;
}

function decodeResponse(encoded: string): string | null {
  const base64 = encoded.replaceAll(/[\t\n\r ]/g, '');
  if (base64.length > MAX_RESPONSE_CHARACTERS || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null;
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

/** The unsigned frame: exactly one assertion, in its place, and no id twice, so that a signature covers what is read. */
function responseProblem(response: XmlElement, { acsUrl, requestId, issuer }: ExpectedResponse): SamlProblem | null {
  if (!isNamed(response, SAMLP, 'Response') || response.attributes.get('Version') !== '2.0') return 'not_a_response';
  const elements = [...everyElement(response)];
  if (elements.some(({ name }) => name.startsWith('Encrypted'))) return 'encrypted';
  const ids = elements.flatMap((element) => element.ids);
  if (new Set(ids).size !== ids.length) return 'duplicate_id';
  if (statusOf(response) !== SUCCESS) return 'not_success';
  if (elements.filter(({ name }) => name === 'Assertion').length !== 1) return 'not_one_assertion';
  if (elements.filter(({ name }) => name === 'Response').length !== 1) return 'not_a_response';
  if (!isTextOrAbsent(response, 'Issuer', issuer)) return 'other_issuer';
  if (response.attributes.get('Destination') !== acsUrl) return 'other_destination';
  return response.attributes.get('InResponseTo') === requestId ? null : 'other_request';
}

function statusOf(response: XmlElement): string {
  const status = onlyChild(response, SAMLP, 'Status');
  const code = status === null ? null : onlyChild(status, SAMLP, 'StatusCode');
  return code?.attributes.get('Value') ?? '';
}

function isTextOrAbsent(parent: XmlElement, name: string, value: string): boolean {
  const found = childrenOf(parent, SAML, name);
  return found.length <= 1 && found.every(({ text }) => text === value);
}

/** The signed text of the assertion. If the response is signed too, that signature must also be valid. */
function readSignedAssertion(
  text: string,
  response: XmlElement,
  assertion: XmlElement,
  keys: readonly string[],
): Result<XmlElement, SamlProblem> {
  const owners = [response, assertion].filter((owner) => childrenOf(owner, DSIG, 'Signature').length > 0);
  const signatures = [...everyElement(response)].filter(({ name }) => name === 'Signature');
  const own = onlyChild(assertion, DSIG, 'Signature');
  if (own === null) return err('not_signed');
  if (signatures.length !== owners.length) return err('signature_form');
  const ofResponse = onlyChild(response, DSIG, 'Signature');
  if (ofResponse !== null) {
    const whole = readSigned({ text, element: response, signature: ofResponse }, keys);
    if (!whole.ok) return whole;
  }
  const signed = readSigned({ text, element: assertion, signature: own }, keys);
  if (!signed.ok) return signed;
  const parsed = parseXml(signed.value, SAML_MESSAGE);
  if (!parsed.ok || !isNamed(parsed.value, SAML, 'Assertion')) return err('signature_form');
  return ok(parsed.value);
}

function readAssertion(assertion: XmlElement, expected: ExpectedResponse): Result<SamlSubject, SamlProblem> {
  const assertionId = assertion.attributes.get('ID') ?? '';
  if (assertion.attributes.get('Version') !== '2.0' || assertionId === '') return err('not_a_response');
  if (onlyChild(assertion, SAML, 'Issuer')?.text !== expected.issuer) return err('other_issuer');
  const subject = onlyChild(assertion, SAML, 'Subject');
  if (subject === null) return err('subject_form');
  const confirmed = confirmedUntil(subject, expected);
  if (!confirmed.ok) return confirmed;
  const valid = conditionsUntil(assertion, expected);
  if (!valid.ok) return valid;
  const problem = authenticationProblem(assertion, expected.nowMs);
  if (problem !== null) return err(problem);
  const person = personOf(assertion, subject);
  if (!person.ok) return person;
  const validUntilMs = Math.max(confirmed.value, valid.value) + SKEW_SECONDS * 1000;
  return ok({ assertionId, validUntilMs, ...person.value });
}

/** Until when the bearer may present the assertion (Profiles section 4.1.4.2). */
function confirmedUntil(subject: XmlElement, expected: ExpectedResponse): Result<number, SamlProblem> {
  const confirmation = onlyChild(subject, SAML, 'SubjectConfirmation');
  if (confirmation === null || confirmation.attributes.get('Method') !== BEARER) return err('subject_form');
  const data = onlyChild(confirmation, SAML, 'SubjectConfirmationData')?.attributes;
  if (data === undefined || data.has('NotBefore')) return err('subject_form');
  if (data.get('Recipient') !== expected.acsUrl) return err('other_recipient');
  if (data.get('InResponseTo') !== expected.requestId) return err('other_request');
  return untilOf(data, expected.nowMs);
}

function conditionsUntil(assertion: XmlElement, expected: ExpectedResponse): Result<number, SamlProblem> {
  const conditions = onlyChild(assertion, SAML, 'Conditions');
  if (conditions === null) return err('not_valid_now');
  const known = ['AudienceRestriction', 'OneTimeUse', 'ProxyRestriction'];
  if (!conditions.children.every((child) => child.namespace === SAML && known.includes(child.name)))
    return err('subject_form');
  const restriction = onlyChild(conditions, SAML, 'AudienceRestriction');
  const audience = restriction === null ? null : onlyChild(restriction, SAML, 'Audience');
  if (audience?.text !== expected.audience) return err('other_audience');
  return untilOf(conditions.attributes, expected.nowMs);
}

/** NotOnOrAfter, if it is given and now is between it and NotBefore. */
function untilOf(attributes: ReadonlyMap<string, string>, nowMs: number): Result<number, SamlProblem> {
  const skewMs = SKEW_SECONDS * 1000;
  const until = timeOf(attributes.get('NotOnOrAfter'));
  const notBefore = attributes.get('NotBefore');
  const from = notBefore === undefined ? nowMs : timeOf(notBefore);
  if (until === null || from === null || nowMs + skewMs < from || nowMs >= until + skewMs) return err('not_valid_now');
  return until - nowMs > MAX_VALID_SECONDS * 1000 ? err('not_valid_now') : ok(until);
}

/** A time in UTC, which SAML requires; null for anything else. */
function timeOf(text = ''): number | null {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

function authenticationProblem(assertion: XmlElement, nowMs: number): SamlProblem | null {
  const statements = childrenOf(assertion, SAML, 'AuthnStatement');
  if (statements.length === 0) return 'no_authentication';
  const ends = statements
    .map(({ attributes }) => attributes.get('SessionNotOnOrAfter'))
    .filter((end) => end !== undefined);
  const areOpen = ends.every((end) => nowMs < (timeOf(end) ?? 0) + SKEW_SECONDS * 1000);
  return areOpen ? null : 'not_valid_now';
}

type Person = Pick<SamlSubject, 'nameId' | 'email' | 'displayName'>;

function personOf(assertion: XmlElement, subject: XmlElement): Result<Person, SamlProblem> {
  const name = onlyChild(subject, SAML, 'NameID');
  const nameId = name?.text ?? '';
  if (name === null || nameId === '' || nameId !== nameId.trim()) return err('subject_form');
  const format = name.attributes.get('Format') ?? '';
  if (format === TRANSIENT) return err('subject_transient');
  const emails = attributeValues(assertion, EMAIL_ATTRIBUTES);
  if (emails === null || emails.length > 1) return err('no_email');
  const email = emails[0] ?? (format === EMAIL_ADDRESS ? nameId : undefined);
  if (email === undefined) return err('no_email');
  return ok({ nameId, email, displayName: attributeValues(assertion, NAME_ATTRIBUTES)?.[0] ?? '' });
}

/** The values of the first of these attributes that is there; null if an attribute is there twice, or is not text. */
function attributeValues(assertion: XmlElement, names: readonly string[]): string[] | null {
  const all = childrenOf(assertion, SAML, 'AttributeStatement').flatMap((each) => childrenOf(each, SAML, 'Attribute'));
  for (const name of names) {
    const [found, ...others] = all.filter(({ attributes }) => attributes.get('Name') === name);
    if (found === undefined) continue;
    const values = childrenOf(found, SAML, 'AttributeValue').map(({ text }) => text);
    return others.length > 0 || values.includes(null) ? null : values.filter((text) => text !== null);
  }
  return [];
}
