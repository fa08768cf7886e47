import type { ServerListing } from './server_catalog.ts';
import { matchesTemplate } from './matches_template.ts';

interface ClaimSources {
  readonly listings: readonly ServerListing<'resources'>[];
  readonly templates: readonly ServerListing<'templates'>[];
  /** The servers, by id, that named a resource in a result. */
  readonly findLinking: (uri: string) => readonly string[];
}

export type Claimant = ServerListing<'resources' | 'templates'>;

/** Budget of characters to compare with templates for one list; after that, no more is compared. */
const MOST_COMPARED = 500_000;

/**
 * The servers that claim a resource: they list it, one of their templates matches it, or one of their results named it. All
 * three count equally, because a server can make each claim equally easily.
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

  claimantsOf(uri: string): readonly Claimant[] {
    const { listings, templates, findLinking: linking } = this.#sources;
    const linked = linking(uri);
    const claiming = [
      ...(this.#listing.get(uri) ?? []),
      ...templates.filter(({ items }) => items.some(({ uriTemplate }) => this.#matches(uriTemplate, uri))),
      ...listings.filter((listing) => linked.includes(idOf(listing))),
    ];
    return [...new Map(claiming.map((listing) => [idOf(listing), listing])).values()];
  }

  /** True if several servers claim a resource, or if the budget is used up. */
  isContested(uri: string): boolean {
    return this.#compared > MOST_COMPARED || this.claimantsOf(uri).length > 1;
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
