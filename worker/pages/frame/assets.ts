/** A file that pages load: the style sheet, an island, or an import of an island. */
export interface AssetSource {
  /** The name in its URL, such as `console.js`. */
  readonly name: string;
  readonly text: string;
}

interface Asset {
  /** `/assets/<name>.<hash>.<ext>`: changed content has another URL, so browsers may cache it forever. */
  readonly url: string;
  readonly contentType: string;
  readonly text: string;
  /** Of the content, hex. */
  readonly hash: string;
}

export type Coding = 'br' | 'gzip';
type Bytes = Uint8Array<ArrayBuffer>;

/** Compressors by content coding, best first. */
export type Encoders = ReadonlyMap<Coding, (text: string) => Promise<Bytes>>;

/** The files that pages load, each under a URL with its hash. */
export class Assets {
  /** The content codings of this program. Empty if the platform compresses. */
  readonly codings: readonly Coding[];
  readonly #byName = new Map<string, Asset>();
  readonly #byUrl = new Map<string, Asset>();
  readonly #encode: Encoders;
  readonly #encoded = new Map<string, Promise<Bytes>>();

  /**
   * An island imports another by its name (`./copy.js`), but its URL has a hash. So imported files come first, and the
   * names are replaced by URLs. `hash` is hex, of a content.
   */
  constructor(sources: readonly AssetSource[], hash: (text: string) => string, encode: Encoders = new Map()) {
    this.#encode = encode;
    this.codings = [...encode.keys()];
    const bySpecifier = new Map(sources.map((source) => [`./${source.name}`, source]));
    const add = (source: AssetSource): Asset => {
      const known = this.#byName.get(source.name);
      if (known !== undefined) return known;
      const text = withImportedUrls(source, (specifier) => {
        const imported = bySpecifier.get(specifier);
        if (imported === undefined) throw unknownImport(source, specifier);
        return add(imported).url;
      });
      const hashed = hash(text).slice(0, 16);
      const asset = { url: urlOf(source.name, hashed), contentType: contentTypeOf(source.name), text, hash: hashed };
      this.#byName.set(source.name, asset);
      this.#byUrl.set(asset.url, asset);
      return asset;
    };
    for (const source of sources) add(source);
  }

  /** Throws for an unknown name, which is a bug. */
  urlOf(name: string): string {
    const asset = this.#byName.get(name);
    if (asset === undefined) throw new Error(`there is no asset ${name}`);
    return asset.url;
  }

  findAsset(url: string): Asset | null {
    return this.#byUrl.get(url) ?? null;
  }

  /** The asset in a coding of {@link codings}: made when it is first asked for, and kept. */
  encode({ url, text }: Asset, coding: Coding): Promise<Bytes> {
    const key = `${coding} ${url}`;
    const known = this.#encoded.get(key);
    if (known !== undefined) return known;
    const encode = this.#encode.get(coding);
    if (encode === undefined) throw new Error(`assets are not sent as ${coding}`);
    const made = encode(text);
    this.#encoded.set(key, made);
    return made;
  }

  listAll(): readonly Asset[] {
    return [...this.#byUrl.values()];
  }
}

const IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])([^"'\n]+)\2/g;

function withImportedUrls({ name, text }: AssetSource, urlFor: (specifier: string) => string): string {
  if (!name.endsWith('.js')) return text;
  return text
    .replaceAll(IMPORT, (_, before: string, quote: string, specifier: string) => {
      return `${before}${quote}${urlFor(specifier)}${quote}`;
    })
    .replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
}

function urlOf(name: string, hash: string): string {
  const dot = name.lastIndexOf('.');
  return `/assets/${name.slice(0, dot)}.${hash}${name.slice(dot)}`;
}

const CONTENT_TYPES = { css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' } as const;

function contentTypeOf(name: string): string {
  const ending = name.slice(name.lastIndexOf('.') + 1);
  if (ending !== 'css' && ending !== 'js' && ending !== 'svg') throw new Error(`${name} has no content type`);
  return `${CONTENT_TYPES[ending]}; charset=utf-8`;
}

function unknownImport({ name }: AssetSource, specifier: string): Error {
  return new Error(`${name} imports ${specifier}, which is not an asset: add it to ASSET_FILES`);
}
