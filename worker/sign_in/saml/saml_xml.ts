import { DOMParser, type XmlElementNode, type XmlNode } from '@xmldom/xmldom/lib/index.js';
import { err, ok, type Result } from '../../../shared/model/result.ts';

export const SAML = 'urn:oasis:names:tc:SAML:2.0:assertion';
export const SAMLP = 'urn:oasis:names:tc:SAML:2.0:protocol';
export const METADATA = 'urn:oasis:names:tc:SAML:2.0:metadata';
export const DSIG = 'http://www.w3.org/2000/09/xmldsig#';

/** An element, without what security must not depend on: it has no comments, and its prefixes are resolved. */
export interface XmlElement {
  readonly namespace: string;
  readonly name: string;
  /** By local name; attributes in a namespace are left out. */
  readonly attributes: ReadonlyMap<string, string>;
  /** The values of all attributes that some reader takes for an id, with and without a prefix. */
  readonly ids: readonly string[];
  readonly children: readonly XmlElement[];
  /** The text of the element itself; null if it also has elements. */
  readonly text: string | null;
  /** The parser's own node. */
  readonly node: XmlElementNode;
}

/** Limits of a document, so that a hostile one costs little. */
const MAX_DEPTH = 64;
const MAX_ELEMENTS = 10_000;

/**
 * Parses a document that a stranger wrote. Refuses what readers of XML disagree about, or what reads other files: a
 * document type, entities, comments, CDATA and processing instructions. None of them has a place in a SAML message. The
 * sequence `<!` cannot occur in well-formed XML for any other purpose.
 */
export function parseXml(text: string): Result<XmlElement, string> {
  const body = text.replace(/^\uFEFF/, '').replace(/^<\?xml [^<>]*\?>/, '');
  if (body.includes('<!')) return err('contains a document type, a comment or CDATA, which are refused');
  if (body.includes('<?')) return err('contains a processing instruction, which is refused');
  try {
    const document = new DOMParser({ errorHandler: refuse }).parseFromString(body.trim(), 'application/xml');
    const budget = { left: MAX_ELEMENTS };
    if (document.documentElement === null) return err('has no element');
    if (document.childNodes.length !== 1) return err('has more than one element');
    return ok(toElement(document.documentElement, 1, budget));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return err('is not well-formed XML, or is nested too deeply');
  }
}

/** The parser repairs what it warns about. A repaired document is not what was signed. */
function refuse(level: string): never {
  throw new Error(`XML ${level}`);
}

const ELEMENT = 1;
const TEXT = 3;

function toElement(node: XmlElementNode, depth: number, budget: { left: number }): XmlElement {
  budget.left -= 1;
  if (depth > MAX_DEPTH || budget.left < 0) throw new Error('too many elements');
  const nodes = listItems(node.childNodes);
  if (nodes.some(({ nodeType }) => nodeType !== ELEMENT && nodeType !== TEXT)) throw new Error('an unknown node');
  const children = nodes.filter(isElement).map((child) => toElement(child, depth + 1, budget));
  const all = listItems(node.attributes);
  const attributes = all.filter(({ prefix, name }) => !prefix && name !== 'xmlns');
  return {
    namespace: node.namespaceURI ?? '',
    name: node.localName,
    attributes: new Map(attributes.map(({ name, value }) => [name, value])),
    ids: all.filter(({ name }) => /^(?:.*:)?id$/i.test(name)).map(({ value }) => value),
    children,
    text: children.length === 0 ? (node.textContent ?? '') : null,
    node,
  };
}

function listItems<T>(list: { readonly length: number; item(at: number): T | null }): T[] {
  return Array.from({ length: list.length }, (_, at) => list.item(at)).filter((item) => item !== null);
}

function isElement(node: XmlNode): node is XmlElementNode {
  return node.nodeType === ELEMENT;
}

export function isNamed(element: XmlElement, namespace: string, name: string): boolean {
  return element.namespace === namespace && element.name === name;
}

export function childrenOf(element: XmlElement, namespace: string, name: string): XmlElement[] {
  return element.children.filter((child) => isNamed(child, namespace, name));
}

/** The only child with this name; null if there is none, or more than one. */
export function onlyChild(element: XmlElement, namespace: string, name: string): XmlElement | null {
  const [first, ...others] = childrenOf(element, namespace, name);
  return others.length === 0 ? (first ?? null) : null;
}

/** The element and all inside it, in the order of the document. */
export function* everyElement(element: XmlElement): Generator<XmlElement> {
  yield element;
  for (const child of element.children) yield* everyElement(child);
}

/** A text as the value of an attribute. */
export function quoteXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
