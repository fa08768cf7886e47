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

const MAX_DEPTH = 64;

/** What a document may have. */
interface XmlForm {
  /** So that a hostile document costs little. */
  readonly mostElements: number;
  /** Whether comments are skipped. Otherwise a document with one is refused. */
  readonly comments: boolean;
}

/**
 * A message that a stranger's browser brings. Comments have no place in one: readers disagree about the text around them.
 * An assertion with 500 groups has about 600 elements.
 */
export const SAML_MESSAGE: XmlForm = { mostElements: 2500, comments: false };
/** Metadata that an owner of the enterprise gives. Products write comments into them. */
export const SAML_METADATA: XmlForm = { mostElements: 10_000, comments: true };

/**
 * Parses a document. Refuses what readers of XML disagree about, or what reads other files: a document type, entities,
 * CDATA and processing instructions, and comments unless the form has them. None of them has a place in a SAML message.
 * The sequence `<!` cannot occur in well-formed XML for any other purpose. Elements are counted before they are parsed.
 */
export function parseXml(text: string, form: XmlForm): Result<XmlElement, string> {
  const body = text.replace(/^\uFEFF/, '').replace(/^<\?xml [^<>]*\?>/, '');
  const plain = form.comments ? withoutComments(body) : body;
  if (plain.includes('<!')) {
    const comment = form.comments ? '' : 'a comment, ';
    return err(`contains a document type, ${comment}or CDATA, which are refused`);
  }
  if (plain.includes('<?')) return err('contains a processing instruction, which is refused');
  if ((plain.match(/<[^/]/g) ?? []).length > form.mostElements) {
    return err(`has more than ${form.mostElements} elements`);
  }
  try {
    const document = new DOMParser({ errorHandler: refuse }).parseFromString(body.trim(), 'application/xml');
    if (document.documentElement === null) return err('has no element');
    const outside = listItems(document.childNodes).filter((node) => !isSkipped(node, form) && !isSpace(node));
    if (outside.length !== 1) return err('has more than one element');
    return ok(toElement(document.documentElement, 1, form));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return err('is not well-formed XML, or is nested too deeply');
  }
}

/** In one pass: a document of openings without an end would make a regular expression read to the end for each. */
function withoutComments(text: string): string {
  const parts: string[] = [];
  let at = 0;
  for (let opening = text.indexOf('<!--'); opening >= 0; opening = text.indexOf('<!--', at)) {
    const end = text.indexOf('-->', opening + 4);
    if (end < 0) break;
    parts.push(text.slice(at, opening));
    at = end + 3;
  }
  return parts.join('') + text.slice(at);
}

/** The parser repairs what it warns about. A repaired document is not what was signed. */
function refuse(level: string): never {
  throw new Error(`XML ${level}`);
}

const ELEMENT = 1;
const TEXT = 3;
const COMMENT = 8;

function isSkipped({ nodeType }: XmlNode, { comments }: XmlForm): boolean {
  return comments && nodeType === COMMENT;
}

function isSpace({ nodeType, textContent }: XmlNode): boolean {
  return nodeType === TEXT && (textContent ?? '').trim() === '';
}

function toElement(node: XmlElementNode, depth: number, form: XmlForm): XmlElement {
  if (depth > MAX_DEPTH) throw new Error('nested too deeply');
  const nodes = listItems(node.childNodes).filter((child) => !isSkipped(child, form));
  if (nodes.some(({ nodeType }) => nodeType !== ELEMENT && nodeType !== TEXT)) throw new Error('an unknown node');
  const children = nodes.filter(isElement).map((child) => toElement(child, depth + 1, form));
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
