import type { ServerListing } from './server_catalog.ts';
import { matchesTemplate } from './uri_template_match.ts';

export interface ClaimSources {
  readonly listings: readonly ServerListing<'resources'>[];
  readonly templates: readonly ServerListing<'templates'>[];
  /** The servers, by id, that named a resource in a result. */
  readonly linking: (uri: string) => readonly string[];
}

export type Claimant = ServerListing<'resources' | 'templates'>;

/** Characters compared with templates before a list is answered without comparing more. */
const MOST_COMPARED = 500_000;

/**
 * Which servers say that a resource is theirs: they list it, a template of theirs could make it, or a result of theirs named it.
 * All three count alike, for a server says each of them as easily as the others.
 */
export class ResourceClaims {
  readonly #sources: ClaimSources;
  readonly #listing = new Map<string, Claimant[]>();
  #compared = 0;

  constructor(sources: ClaimSources) {
    this.#sources = sources;
    for (const listing of sources.listings) {
      for (const { uri } of listing.items) this.#listing.set(uri, [...(this.#listing.get(uri) ?? []), listing]);
    }
  }

  get listings(): ClaimSources['listings'] {
    return this.#sources.listings;
  }

  of(uri: string): readonly Claimant[] {
    const { listings, templates, linking } = this.#sources;
    const linked = linking(uri);
    const claiming = [
      ...(this.#listing.get(uri) ?? []),
      ...templates.filter(({ items }) => items.some(({ uriTemplate }) => this.#matches(uriTemplate, uri))),
      ...listings.filter((listing) => linked.includes(idOf(listing))),
    ];
    return [...new Map(claiming.map((listing) => [idOf(listing), listing])).values()];
  }

  /** True when several servers claim a resource, and when that takes too long to find out. */
  isContested(uri: string): boolean {
    return this.#compared > MOST_COMPARED || this.of(uri).length > 1;
  }

  #matches(template: string, uri: string): boolean {
    const start = template.indexOf('{');
    if (!uri.startsWith(start < 0 ? template : template.slice(0, start))) return false;
    this.#compared += template.length + uri.length;
    return matchesTemplate(template, uri);
  }
}

function idOf({ supervised }: Claimant): string {
  return supervised.server.id;
}
