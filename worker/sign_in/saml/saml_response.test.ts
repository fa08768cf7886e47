import { describe, expect, test, vi } from 'vitest';
import { SignedXml } from 'xml-crypto';
import {
  newSamlKey,
  PERSISTENT,
  sampleAssertion,
  sampleResponse,
  type SampleResponse,
  signXml,
} from '../../../e2e/sign_in/saml_samples.ts';
import { type ExpectedResponse, readResponse, type SamlProblem } from './saml_response.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const KEY = newSamlKey();
const OTHER_KEY = newSamlKey();
const EXPECTED: ExpectedResponse = {
  requestId: '_request',
  acsUrl: 'https://svc.test/auth/ent_1/acs',
  audience: 'https://svc.test/auth/ent_1/metadata',
  issuer: 'https://idp.acme.test/saml',
  keys: [KEY.publicKey],
  nowMs: NOW,
};
const OF: SampleResponse = {
  issuer: EXPECTED.issuer,
  acsUrl: EXPECTED.acsUrl,
  audience: EXPECTED.audience,
  requestId: EXPECTED.requestId,
  nowMs: NOW,
  nameId: 'alice-1',
  format: PERSISTENT,
  email: 'alice@acme.test',
};
const PLAIN = sampleResponse(OF, sampleAssertion(OF));
const SIGNED = signXml(PLAIN, KEY);
const EVIL = sampleAssertion({ ...OF, nameId: 'mallory', email: 'ceo@acme.test' }, '_evil');
const ASSERTION = /<saml:Assertion .*<\/saml:Assertion>/.exec(SIGNED)?.[0] ?? '';
const SIGNATURE = /<ds:Signature .*<\/ds:Signature>/.exec(SIGNED)?.[0] ?? '';
const BARE = ASSERTION.replace(SIGNATURE, '');

const read = (text: string, more: Partial<ExpectedResponse> = {}) =>
  readResponse(Buffer.from(text).toString('base64'), { ...EXPECTED, ...more });

const signed = (of: Partial<SampleResponse>) => signXml(sampleResponse(OF, sampleAssertion({ ...OF, ...of })), KEY);
/** A response that the provider signed after a change. */
const signedAfter = (from: string | RegExp, to: string) => signXml(replaceOnce(PLAIN, from, to), KEY);
/** A response changed after it was signed. */
const changed = (from: string | RegExp, to: string) => replaceOnce(SIGNED, from, to);
const around = (inside: string) => sampleResponse(OF, inside);
/** The evil assertion, with something before its subject. */
const evilWith = (inside: string, at = '<saml:Subject>') => EVIL.replace(at, inside + at);

function replaceOnce(text: string, from: string | RegExp, to: string): string {
  const after = text.replace(from, () => to);
  if (after === text) throw new Error(`the sample does not contain ${String(from)}`);
  return after;
}

describe('a response is accepted', () => {
  const WHO = { nameId: 'alice-1', email: 'alice@acme.test', assertionId: '_assertion' };

  test.each([
    ['with a signed assertion', SIGNED],
    ['with a signed assertion in a signed response', signXml(SIGNED, KEY, { id: '_response' })],
    [
      'signed with RSA and SHA-512',
      signXml(PLAIN, KEY, {
        algorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
        digest: 'http://www.w3.org/2001/04/xmlenc#sha512',
      }),
    ],
    ['with an XML declaration', `<?xml version="1.0" encoding="UTF-8"?>\n${SIGNED}`],
  ])('%s', (_, text) => {
    expect(read(text)).toMatchObject({ ok: true, value: WHO });
  });

  test('signed by any of the enterprise’s certificates', () => {
    expect(read(SIGNED, { keys: [OTHER_KEY.publicKey, KEY.publicKey] })).toMatchObject({ ok: true, value: WHO });
  });

  test('up to a minute early or late, and remembered for that long', () => {
    expect(read(SIGNED, { nowMs: NOW - 60_000 })).toMatchObject({ ok: true });
    expect(read(SIGNED, { nowMs: NOW + 359_000 })).toMatchObject({ ok: true, value: { validUntilMs: NOW + 360_000 } });
  });

  test('with the address as its NameID', () => {
    const format = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
    const text = signXml(
      around(
        sampleAssertion({ ...OF, format, nameId: 'bob@acme.test' }).replace(
          /<saml:AttributeStatement>.*<\/saml:AttributeStatement>/,
          '',
        ),
      ),
      KEY,
    );
    expect(read(text)).toMatchObject({ ok: true, value: { nameId: 'bob@acme.test', email: 'bob@acme.test' } });
  });
});

test('the digest of an element is compared once, whether one of ten certificates signed it or none', () => {
  const keys = Array.from({ length: 10 }, () => OTHER_KEY.publicKey);
  for (const [last, isAccepted] of [
    [KEY.publicKey, true],
    [OTHER_KEY.publicKey, false],
  ] as const) {
    const digests = vi.spyOn(SignedXml.prototype, 'checkSignature');
    expect(read(SIGNED, { keys: [...keys.slice(1), last] }).ok).toBe(isAccepted);
    expect(digests).toHaveBeenCalledTimes(1);
    digests.mockRestore();
  }
});

/** Signature wrapping: a signed assertion stays in the document, and another one is to be read. */
const WRAPPED: readonly (readonly [string, string, SamlProblem])[] = [
  [
    'XSW1: the signed response inside the signature of an evil one',
    (() => {
      const whole = signXml(PLAIN, KEY, { id: '_response' });
      const signature = /<ds:Signature .*<\/ds:Signature>/.exec(whole)?.[0] ?? '';
      const original = whole.replace(signature, '');
      const holding = signature.replace('</ds:Signature>', `<ds:Object>${original}</ds:Object></ds:Signature>`);
      return around(EVIL)
        .replace('"_response"', '"_evilResponse"')
        .replace('<samlp:Status>', `${holding}<samlp:Status>`);
    })(),
    'not_one_assertion',
  ],
  [
    'XSW2: the signed response beside a detached signature',
    (() => {
      const whole = signXml(PLAIN, KEY, { id: '_response' });
      const signature = /<ds:Signature .*<\/ds:Signature>/.exec(whole)?.[0] ?? '';
      const original = whole.replace(signature, '');
      return around(EVIL)
        .replace('"_response"', '"_evilResponse"')
        .replace('<samlp:Status>', `${original}${signature}<samlp:Status>`);
    })(),
    'not_one_assertion',
  ],
  ['XSW3: an evil assertion before the signed one', around(EVIL + ASSERTION), 'not_one_assertion'],
  ['XSW3 reversed: an evil assertion after the signed one', around(ASSERTION + EVIL), 'not_one_assertion'],
  ['XSW4: the signed assertion inside an evil one', around(evilWith(ASSERTION)), 'not_one_assertion'],
  [
    'XSW5: an evil assertion with the signature, the signed one at the end',
    around(evilWith(SIGNATURE) + BARE),
    'not_one_assertion',
  ],
  [
    'XSW6: an evil assertion whose signature contains the signed one',
    around(evilWith(SIGNATURE.replace('</ds:Signature>', `${BARE}</ds:Signature>`))),
    'not_one_assertion',
  ],
  [
    'XSW7: an evil assertion in Extensions, before the signed one',
    around(`<samlp:Extensions>${EVIL}</samlp:Extensions>${ASSERTION}`),
    'not_one_assertion',
  ],
  [
    'XSW8: an evil assertion whose signature has the signed one in an Object',
    around(evilWith(SIGNATURE.replace('</ds:Signature>', `<ds:Object>${BARE}</ds:Object></ds:Signature>`))),
    'not_one_assertion',
  ],
  [
    'the signed assertion renamed to hide it, inside an evil one',
    around(evilWith(SIGNATURE + BARE.replaceAll('saml:Assertion', 'saml:Advice'))),
    'signature_form',
  ],
  ['an evil assertion with the signed one’s signature', around(evilWith(SIGNATURE)), 'signature_form'],
  [
    'an evil assertion with the signed one’s id and signature',
    around(evilWith(SIGNATURE).replace('"_evil"', '"_assertion"')),
    'signature_invalid',
  ],
  ['two assertions with one id', around(ASSERTION + EVIL.replace('"_evil"', '"_assertion"')), 'duplicate_id'],
  [
    'an assertion of another namespace beside the signed one',
    around(`${ASSERTION}<Assertion xmlns="urn:other" ID="_o"/>`),
    'not_one_assertion',
  ],
  [
    'the assertion anywhere else than in the response',
    around(`<samlp:Extensions>${ASSERTION}</samlp:Extensions>`),
    'not_one_assertion',
  ],
  [
    'an id in another attribute that a reader could take',
    changed('<saml:Subject>', '<saml:Subject xml:id="_assertion">'),
    'duplicate_id',
  ],
  ['an id in lower case', changed('<samlp:Status>', '<samlp:Status id="_assertion">'), 'duplicate_id'],
  [
    'a response inside the response',
    around(`<samlp:Extensions>${sampleResponse(OF, '').replace('"_response"', '"_r"')}</samlp:Extensions>${ASSERTION}`),
    'not_a_response',
  ],
];

const SHA1 = 'http://www.w3.org/2000/09/xmldsig#sha1';
const INCLUSIVE = 'http://www.w3.org/TR/2001/REC-xml-c14n-20010315';
const WITH_COMMENTS = 'http://www.w3.org/2001/10/xml-exc-c14n#WithComments';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';

const SIGNATURES: readonly (readonly [string, string, SamlProblem])[] = [
  ['no signature', PLAIN, 'not_signed'],
  ['a signature of the response only', signXml(PLAIN, KEY, { id: '_response' }), 'not_signed'],
  ['a signature by another key', signXml(PLAIN, OTHER_KEY), 'signature_invalid'],
  [
    'a signature by another key, with that key in the document',
    signXml(PLAIN, OTHER_KEY).replace(
      '</ds:SignatureValue>',
      `</ds:SignatureValue><ds:KeyInfo><ds:KeyValue>${OTHER_KEY.publicKey.replaceAll(/-----[^-]+-----|\s/g, '')}</ds:KeyValue></ds:KeyInfo>`,
    ),
    'signature_invalid',
  ],
  ['an address changed after signing', changed('alice@acme.test', 'ceo@acme.test'), 'signature_invalid'],
  ['a NameID changed after signing', changed('>alice-1<', '>alice-2<'), 'signature_invalid'],
  ['a digest changed after signing', changed(/<ds:DigestValue>.{4}/, '<ds:DigestValue>AAAA'), 'signature_invalid'],
  [
    'an empty signature value',
    changed(/<ds:SignatureValue>.*<\/ds:SignatureValue>/, '<ds:SignatureValue></ds:SignatureValue>'),
    'signature_invalid',
  ],
  [
    'RSA with SHA-1',
    signXml(PLAIN, KEY, { algorithm: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1' }),
    'signature_algorithm',
  ],
  ['a digest by SHA-1', signXml(PLAIN, KEY, { digest: SHA1 }), 'signature_algorithm'],
  [
    'HMAC with the public key',
    changed('http://www.w3.org/2001/04/xmldsig-more#rsa-sha256', 'http://www.w3.org/2000/09/xmldsig#hmac-sha1'),
    'signature_algorithm',
  ],
  [
    'an algorithm named like a property of objects',
    changed('http://www.w3.org/2001/04/xmldsig-more#rsa-sha256', 'constructor'),
    'signature_algorithm',
  ],
  ['inclusive canonicalization', signXml(PLAIN, KEY, { transforms: [ENVELOPED, INCLUSIVE] }), 'signature_algorithm'],
  [
    'canonicalization that keeps comments',
    signXml(PLAIN, KEY, { transforms: [ENVELOPED, WITH_COMMENTS] }),
    'signature_algorithm',
  ],
  [
    'a signature over itself without the enveloped transform',
    signXml(PLAIN, KEY, { transforms: [EXCLUSIVE] }),
    'signature_form',
  ],
  ['transforms in another order', signXml(PLAIN, KEY, { transforms: [EXCLUSIVE, ENVELOPED] }), 'signature_algorithm'],
  ['a third transform', signXml(PLAIN, KEY, { transforms: [ENVELOPED, EXCLUSIVE, EXCLUSIVE] }), 'signature_form'],
  [
    'a SignedInfo canonicalized inclusively',
    signXml(PLAIN, KEY, { canonicalization: INCLUSIVE }),
    'signature_algorithm',
  ],
  [
    'an XPath transform',
    changed(
      `<ds:Transform Algorithm="${ENVELOPED}"/>`,
      '<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><ds:XPath>1</ds:XPath></ds:Transform>',
    ),
    'signature_algorithm',
  ],
  ['a reference to the whole document', changed('URI="#_assertion"', 'URI=""'), 'signature_form'],
  ['a reference to another element', changed('URI="#_assertion"', 'URI="#_response"'), 'signature_form'],
  [
    'a reference to another document',
    changed('URI="#_assertion"', 'URI="https://evil.test/assertion.xml"'),
    'signature_form',
  ],
  [
    'a second reference',
    changed('</ds:SignedInfo>', `${/<ds:Reference .*<\/ds:Reference>/.exec(SIGNED)?.[0] ?? ''}</ds:SignedInfo>`),
    'signature_form',
  ],
  ['a second SignedInfo', changed('<ds:SignatureValue>', '<ds:SignedInfo/><ds:SignatureValue>'), 'signature_form'],
  [
    'a second signature value',
    changed('</ds:Signature>', '<ds:SignatureValue>AAAA</ds:SignatureValue></ds:Signature>'),
    'signature_form',
  ],
  ['a second signature', changed('</ds:Signature>', `</ds:Signature>${SIGNATURE}`), 'not_signed'],
  [
    'a SignedInfo inside the method of the signature',
    changed('<ds:SignedInfo>', '<ds:KeyInfo><ds:CanonicalizationMethod Algorithm="x"/></ds:KeyInfo><ds:SignedInfo>'),
    'signature_form',
  ],
  ['elements inside DigestValue', changed('<ds:DigestValue>', '<ds:DigestValue><ds:x/>'), 'signature_form'],
  [
    'a signature elsewhere in the response',
    around(`<samlp:Extensions>${SIGNATURE}</samlp:Extensions>${ASSERTION}`),
    'signature_form',
  ],
  [
    'an invalid signature of the response beside a valid one of the assertion',
    signXml(SIGNED, OTHER_KEY, { id: '_response' }),
    'signature_invalid',
  ],
];

const DOCUMENTS: readonly (readonly [string, string, SamlProblem])[] = [
  ['a document type', `<!DOCTYPE x>${SIGNED}`, 'not_readable'],
  [
    'an external entity',
    `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>${changed('alice-1', '&e;')}`,
    'not_readable',
  ],
  ['entities that grow', `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>${SIGNED}`, 'not_readable'],
  ['an unknown entity', changed('alice-1', '&nbsp;'), 'not_readable'],
  ['a comment inside the NameID', changed('alice-1', 'alice<!-- -->-1'), 'not_readable'],
  ['a comment inside the address', changed('alice@acme.test', 'alice@acme.test<!---->.evil.test'), 'not_readable'],
  ['a comment that the provider signed', signedAfter('alice-1', 'alice<!-- -->-1'), 'not_readable'],
  ['CDATA inside the NameID', changed('alice-1', '<![CDATA[alice-1]]>'), 'not_readable'],
  ['a processing instruction inside the NameID', changed('alice-1', 'alice<?x ?>-1'), 'not_readable'],
  ['an element inside the NameID', signedAfter('alice-1', 'alice<saml:x/>-1'), 'subject_form'],
  ['a second root element', `${SIGNED}<x/>`, 'not_readable'],
  ['text after the response', `${SIGNED}x`, 'not_readable'],
  ['an element that does not end', SIGNED.replace('</samlp:Response>', ''), 'not_readable'],
  ['an attribute twice', changed('ID="_assertion"', 'ID="_assertion" ID="_assertion"'), 'not_readable'],
  ['an attribute without quotes', changed('ID="_assertion"', 'ID=_assertion'), 'not_readable'],
  ['very deep nesting', around('<a>'.repeat(500) + '</a>'.repeat(500)), 'not_readable'],
  ['very many elements', around('<a/>'.repeat(20_000)), 'not_readable'],
  ['more elements than it needs', around('<a/>'.repeat(2500)), 'not_readable'],
  ['a request instead of a response', SIGNED.replaceAll('samlp:Response', 'samlp:AuthnRequest'), 'not_a_response'],
  [
    'a response of another namespace',
    changed('xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"', 'xmlns:samlp="urn:other"'),
    'not_a_response',
  ],
  ['SAML 1.1', changed('Version="2.0"', 'Version="1.1"'), 'not_a_response'],
];

const FACTS: readonly (readonly [string, string, SamlProblem])[] = [
  ['a provider that refused', changed('status:Success', 'status:Responder'), 'not_success'],
  ['another issuer', signed({ issuer: 'https://evil.test' }), 'other_issuer'],
  ['another issuer of the response', changed(EXPECTED.issuer, 'https://evil.test'), 'other_issuer'],
  [
    'another destination',
    changed('Destination="https://svc.test', 'Destination="https://evil.test'),
    'other_destination',
  ],
  ['no destination', changed(/Destination="[^"]*" /, ''), 'other_destination'],
  ['another recipient', signed({ acsUrl: 'https://svc.test/auth/ent_2/acs' }), 'other_recipient'],
  ['no recipient', signedAfter(/ Recipient="[^"]*"/, ''), 'other_recipient'],
  [
    'the audience of another enterprise',
    signed({ audience: 'https://svc.test/auth/ent_2/metadata' }),
    'other_audience',
  ],
  ['an audience that begins with ours', signed({ audience: `${EXPECTED.audience}/x` }), 'other_audience'],
  ['no audience', signedAfter(/<saml:AudienceRestriction>.*<\/saml:AudienceRestriction>/, ''), 'other_audience'],
  [
    'a second audience',
    signedAfter('</saml:Audience>', '</saml:Audience><saml:Audience>https://evil.test</saml:Audience>'),
    'other_audience',
  ],
  ['another request', signed({ requestId: '_other' }), 'other_request'],
  [
    'a response to another request around the assertion',
    changed('InResponseTo="_request">', 'InResponseTo="_other">'),
    'other_request',
  ],
  [
    'no request, as a provider starts it',
    signedAfter('InResponseTo="_request" NotOnOrAfter', 'NotOnOrAfter'),
    'other_request',
  ],
  ['no conditions', signedAfter(/<saml:Conditions .*<\/saml:Conditions>/, ''), 'not_valid_now'],
  ['no end of its validity', signedAfter(/ NotOnOrAfter="[^"]*">/, '>'), 'not_valid_now'],
  ['no end of its confirmation', signedAfter(/NotOnOrAfter="[^"]*" Recipient/, 'Recipient'), 'not_valid_now'],
  [
    'a validity of years',
    signedAfter(/NotOnOrAfter="2026[^"]*">/, 'NotOnOrAfter="2036-01-01T00:00:00Z">'),
    'not_valid_now',
  ],
  [
    'a time that is not UTC',
    signedAfter(/NotBefore="[^"]*"/, 'NotBefore="2026-03-01T12:00:00+14:00"'),
    'not_valid_now',
  ],
  ['a time that does not exist', signedAfter(/NotBefore="[^"]*"/, 'NotBefore="2026-13-41T12:00:00Z"'), 'not_valid_now'],
  ['an unknown condition', signedAfter('</saml:Conditions>', '<saml:Condition/></saml:Conditions>'), 'subject_form'],
  ['a confirmation by another method', signedAfter('cm:bearer', 'cm:sender-vouches'), 'subject_form'],
  ['two confirmations', signedAfter('</saml:Subject>', '<saml:SubjectConfirmation/></saml:Subject>'), 'subject_form'],
  [
    'a confirmation with NotBefore',
    signedAfter('<saml:SubjectConfirmationData ', '<saml:SubjectConfirmationData NotBefore="2026-03-01T12:00:00Z" '),
    'subject_form',
  ],
  ['no subject', signedAfter(/<saml:Subject>.*<\/saml:Subject>/, ''), 'subject_form'],
  ['two subjects', signedAfter('<saml:Subject>', '<saml:Subject/><saml:Subject>'), 'subject_form'],
  ['two NameIDs', signedAfter('<saml:NameID ', '<saml:NameID>ceo</saml:NameID><saml:NameID '), 'subject_form'],
  ['an empty NameID', signedAfter('>alice-1<', '><'), 'subject_form'],
  ['spaces around the NameID', signedAfter('>alice-1<', '> alice-1<'), 'subject_form'],
  [
    'a transient NameID',
    signed({ format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient' }),
    'subject_transient',
  ],
  ['an encrypted assertion', around('<saml:EncryptedAssertion/>'), 'encrypted'],
  ['an encrypted NameID', signedAfter(/<saml:NameID .*<\/saml:NameID>/, '<saml:EncryptedID/>'), 'encrypted'],
  ['no authentication', signedAfter(/<saml:AuthnStatement .*<\/saml:AuthnStatement>/, ''), 'no_authentication'],
  [
    'a session that is over',
    signedAfter('SessionIndex="_s"', 'SessionNotOnOrAfter="2026-03-01T11:00:00Z"'),
    'not_valid_now',
  ],
  ['no address', signedAfter('Name="email"', 'Name="phone"'), 'no_email'],
  [
    'two addresses',
    signedAfter(
      '</saml:AttributeValue>',
      '</saml:AttributeValue><saml:AttributeValue>ceo@acme.test</saml:AttributeValue>',
    ),
    'no_email',
  ],
  [
    'the address attribute twice',
    signedAfter('</saml:AttributeStatement>', '<saml:Attribute Name="email"/></saml:AttributeStatement>'),
    'no_email',
  ],
];

describe('a hostile response is refused', () => {
  test.each([...WRAPPED, ...SIGNATURES, ...DOCUMENTS, ...FACTS])('%s', (_, text, problem) => {
    expect(read(text)).toEqual({ ok: false, error: problem });
  });

  test.each([
    ['two minutes before it is valid', NOW - 120_000],
    ['a minute after it has expired', NOW + 360_000],
  ])('%s', (_, nowMs) => {
    expect(read(SIGNED, { nowMs })).toEqual({ ok: false, error: 'not_valid_now' });
  });

  test('signed by the key of another enterprise', () => {
    expect(read(SIGNED, { keys: [OTHER_KEY.publicKey] })).toEqual({ ok: false, error: 'signature_invalid' });
  });

  test('for an enterprise without keys', () => {
    expect(read(SIGNED, { keys: [] })).toEqual({ ok: false, error: 'signature_invalid' });
  });

  test.each([
    ['nothing', ''],
    ['not base64', '<samlp:Response/>'],
    ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe, 0x3c]).toString('base64')],
    ['too long', 'A'.repeat(300_000)],
  ])('%s', (_, encoded) => {
    expect(readResponse(encoded, EXPECTED)).toEqual({ ok: false, error: 'not_readable' });
  });
});
