import { SignedXml } from 'xml-crypto';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { DSIG, everyElement, isNamed, onlyChild, type XmlElement } from './saml_xml.ts';

const EXCLUSIVE_C14N = 'http://www.w3.org/2001/10/xml-exc-c14n#';
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';
const SIGNATURES = [
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
];
const DIGESTS = ['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512'];

export type SignatureProblem = 'signature_form' | 'signature_algorithm' | 'signature_invalid';

interface SignedElement {
  /** The whole document, as it was parsed. */
  readonly text: string;
  /** The element that the signature must cover. */
  readonly element: XmlElement;
  /** The signature, a child of the element. */
  readonly signature: XmlElement;
}

/**
 * The canonical text of an element that one of the keys signed. Only this text may be read afterwards: it is what the
 * signature covers. The signature must have exactly one form, so that the library has nothing to choose: one reference
 * to the element itself, the enveloped-signature transform, then exclusive canonicalization, SHA-256 or better. A key
 * inside the document is ignored.
 */
export function readSigned(signed: SignedElement, keys: readonly string[]): Result<string, SignatureProblem> {
  const problem = formProblem(signed);
  if (problem !== null) return err(problem);
  const text = verify(signed, keys);
  return text === null ? err('signature_invalid') : ok(text);
}

/** The library reads the document and compares the digest once, however many keys there are. */
function verify({ text, signature }: SignedElement, keys: readonly string[]): string | null {
  const [firstKey] = keys;
  if (firstKey === undefined) return null;
  const verifier = new SignedXml({ publicCert: firstKey, getCertFromKeyInfo: () => null });
  keepOnly(verifier.SignatureAlgorithms, SIGNATURES);
  keepOnly(verifier.HashAlgorithms, DIGESTS);
  keepOnly(verifier.CanonicalizationAlgorithms, [EXCLUSIVE_C14N, ENVELOPED]);
  for (const [name, Algorithm] of Object.entries(verifier.SignatureAlgorithms)) {
    verifier.SignatureAlgorithms[name] = verifyingWithAny(Algorithm, keys);
  }
  try {
    verifier.loadSignature(signature.node);
    if (!verifier.checkSignature(text)) return null;
  } catch (error) {
    // The library throws for every signature that does not fit.
    if (!(error instanceof Error)) throw error;
    return null;
  }
  const [first, ...others] = verifier.getSignedReferences();
  return first === undefined || others.length > 0 ? null : first;
}

type SignatureAlgorithm = SignedXml['SignatureAlgorithms'][string];

/** The same algorithm, which only verifies, and takes a signature by any of several keys. */
function verifyingWithAny(Algorithm: SignatureAlgorithm, keys: readonly string[]): SignatureAlgorithm {
  return class {
    readonly #algorithm = new Algorithm();

    getSignature(): never {
      throw new Error('this algorithm only verifies');
    }

    verifySignature(material: string, _first: unknown, value: string): boolean {
      return keys.some((key) => this.#algorithm.verifySignature(material, key, value));
    }

    getAlgorithmName() {
      return this.#algorithm.getAlgorithmName();
    }
  };
}

function keepOnly(algorithms: Record<string, unknown>, names: readonly string[]): void {
  for (const name of Object.keys(algorithms)) if (!names.includes(name)) delete algorithms[name];
}

function formProblem({ element, signature }: SignedElement): SignatureProblem | null {
  const [signedInfo, value, ...keyInfo] = signature.children;
  if (
    signedInfo === undefined ||
    value === undefined ||
    !isNames([signedInfo, value], ['SignedInfo', 'SignatureValue'])
  )
    return 'signature_form';
  if (value.text === null || keyInfo.length > 1 || !keyInfo.every((child) => isNamed(child, DSIG, 'KeyInfo')))
    return 'signature_form';
  const [canonicalization, method, reference] = signedInfo.children;
  const names = ['CanonicalizationMethod', 'SignatureMethod', 'Reference'];
  if (canonicalization === undefined || method === undefined || reference === undefined) return 'signature_form';
  if (!isNames(signedInfo.children, names) || method.children.length > 0) return 'signature_form';
  if (reference.attributes.get('URI') !== `#${element.attributes.get('ID') ?? ''}`) return 'signature_form';
  if (algorithmOf(canonicalization) !== EXCLUSIVE_C14N || !SIGNATURES.includes(algorithmOf(method)))
    return 'signature_algorithm';
  return isOnlyPrefixes(canonicalization) ? referenceProblem(reference) : 'signature_form';
}

function referenceProblem(reference: XmlElement): SignatureProblem | null {
  if (!isNames(reference.children, ['Transforms', 'DigestMethod', 'DigestValue'])) return 'signature_form';
  const digest = onlyChild(reference, DSIG, 'DigestMethod');
  const value = onlyChild(reference, DSIG, 'DigestValue');
  const transforms = onlyChild(reference, DSIG, 'Transforms');
  if (digest === null || value === null || transforms === null) return 'signature_form';
  if (digest.children.length > 0 || value.text === null) return 'signature_form';
  if (!DIGESTS.includes(algorithmOf(digest))) return 'signature_algorithm';
  const [enveloped, canonical] = transforms.children;
  if (enveloped === undefined || canonical === undefined) return 'signature_form';
  if (!isNames(transforms.children, ['Transform', 'Transform'])) return 'signature_form';
  if (algorithmOf(enveloped) !== ENVELOPED || algorithmOf(canonical) !== EXCLUSIVE_C14N) return 'signature_algorithm';
  return enveloped.children.length === 0 && isOnlyPrefixes(canonical) ? null : 'signature_form';
}

/** Whether an element contains nothing, or only the list of prefixes of exclusive canonicalization. */
function isOnlyPrefixes(element: XmlElement): boolean {
  const inside = [...everyElement(element)].slice(1);
  return inside.length <= 1 && inside.every((child) => isNamed(child, EXCLUSIVE_C14N, 'InclusiveNamespaces'));
}

function isNames(elements: readonly XmlElement[], names: readonly string[]): boolean {
  return elements.length === names.length && elements.every((each, at) => isNamed(each, DSIG, names[at] ?? ''));
}

function algorithmOf(element: XmlElement): string {
  return element.attributes.get('Algorithm') ?? '';
}
