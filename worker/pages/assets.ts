/** A file that pages load: the style sheet, an island, or what islands import. */
export interface AssetSource {
  /** The name in its URL, such as `console.js`. */
  readonly name: string;
  /** What an island imports it by, such as `./copy.js` or `preact/hooks`. */
  readonly specifier: string;
  readonly text: string;
}

export interface Asset {
  /** `/assets/<name>.<hash>.<ext>`: another content has another URL, so a browser may keep it for ever. */
  readonly url: string;
  readonly contentType: string;
  readonly text: string;
}

/** The files that pages load, each under the URL of its content. */
export class Assets {
  readonly #byName = new Map<string, Asset>();
  readonly #byUrl = new Map<string, Asset>();

  /**
   * Browsers know no bare names and no hashes, so what an island imports is written as the URL of it: the imported ones come
   * first. `hash` is hex, of a content.
   */
  constructor(sources: readonly AssetSource[], hash: (text: string) => string) {
    const bySpecifier = new Map(sources.map((source) => [source.specifier, source]));
    const add = (source: AssetSource): Asset => {
      const known = this.#byName.get(source.name);
      if (known !== undefined) return known;
      const text = withImportedUrls(source, (specifier) => {
        const imported = bySpecifier.get(specifier);
        if (imported === undefined) throw unknownImport(source, specifier);
        return add(imported).url;
      });
      const asset = { url: urlOf(source.name, hash(text)), contentType: contentTypeOf(source.name), text };
      this.#byName.set(source.name, asset);
      this.#byUrl.set(asset.url, asset);
      return asset;
    };
    for (const source of sources) add(source);
  }

  /** Throws for a name that there is none of: that is a bug. */
  urlOf(name: string): string {
    const asset = this.#byName.get(name);
    if (asset === undefined) throw new Error(`there is no asset ${name}`);
    return asset.url;
  }

  at(url: string): Asset | null {
    return this.#byUrl.get(url) ?? null;
  }

  all(): readonly Asset[] {
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
  return `/assets/${name.slice(0, dot)}.${hash.slice(0, 16)}${name.slice(dot)}`;
}

function contentTypeOf(name: string): string {
  return name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
}

function unknownImport({ name }: AssetSource, specifier: string): Error {
  return new Error(`${name} imports ${specifier}, which is no asset: add it to ASSET_FILES`);
}
