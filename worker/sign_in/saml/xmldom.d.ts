/** What svc uses of the parser. The types of the package itself make every file of the program see a browser's globals. */
declare module '@xmldom/xmldom/lib/index.js' {
  export interface XmlNode {
    readonly nodeType: number;
    readonly textContent: string | null;
    readonly childNodes: { readonly length: number; item(at: number): XmlNode | null };
  }

  export interface XmlAttribute {
    readonly name: string;
    readonly value: string;
    readonly prefix: string | null;
  }

  export interface XmlElementNode extends XmlNode {
    readonly namespaceURI: string | null;
    readonly localName: string;
    readonly attributes: { readonly length: number; item(at: number): XmlAttribute | null };
  }

  export class DOMParser {
    constructor(options: { readonly errorHandler: (level: string, message: string) => void });
    parseFromString(
      text: string,
      type: 'application/xml',
    ): { readonly documentElement: XmlElementNode | null; readonly childNodes: XmlNode['childNodes'] };
  }
}
