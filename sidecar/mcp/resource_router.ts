import {
  type ListResourcesResult,
  type ListResourceTemplatesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type InputRequiredResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Caller } from './caller.ts';
import type { Forwarder } from './forwarder.ts';
import type { ClientRequest } from './gateway_client.ts';
import type { GatewayLimits } from './gateway_limits.ts';
import { isLargerThan } from './json_size.ts';
import { LinkedResources } from './linked_resources.ts';
import { pageOf, sortedBy } from './paged.ts';
import { qualifiedUri, readQualifiedUri } from './qualified_uri.ts';
import type { ServerCatalog, ServerListing } from './server_catalog.ts';
import type { SupervisedServer } from './supervised_server.ts';
import { matchesTemplate } from './uri_template_match.ts';

export interface ResourceRouterOptions {
  readonly catalog: Pick<ServerCatalog, 'all'>;
  readonly forwarder: Forwarder;
  readonly limits: GatewayLimits;
}

/** The server of a resource, and the resource's own URI there. */
export interface ResourcePlace {
  readonly supervised: SupervisedServer;
  readonly uri: string;
}

/**
 * Resources keep their URIs, for results of tools name them too. A URI that two servers list is shown with the server's name
 * in it, and refused without: neither may pass for the other.
 */
export class ResourceRouter {
  readonly links = new LinkedResources();
  readonly #options: ResourceRouterOptions;

  constructor(options: ResourceRouterOptions) {
    this.#options = options;
  }

  async list(caller: Caller, cursor: string | undefined, signal: AbortSignal): Promise<ListResourcesResult> {
    const listings = await this.#options.catalog.all('resources', caller, signal);
    const counts = new Map<string, number>();
    for (const { items } of listings) for (const { uri } of items) counts.set(uri, (counts.get(uri) ?? 0) + 1);
    const shown = listings.flatMap(({ name, items }) =>
      items.map((item): Resource =>
        (counts.get(item.uri) ?? 0) > 1 ? { ...item, uri: qualifiedUri(name, item.uri) } : item,
      ),
    );
    const page = this.#page(shown, ({ uri }) => uri, cursor);
    return { resources: [...page.items], ...nextOf(page.nextCursor) };
  }

  async templates(
    caller: Caller,
    cursor: string | undefined,
    signal: AbortSignal,
  ): Promise<ListResourceTemplatesResult> {
    const listings = await this.#options.catalog.all('templates', caller, signal);
    const byTemplate = new Map<string, ResourceTemplateType>();
    for (const { items } of listings) {
      for (const item of items) if (!byTemplate.has(item.uriTemplate)) byTemplate.set(item.uriTemplate, item);
    }
    const page = this.#page([...byTemplate.values()], ({ uriTemplate }) => uriTemplate, cursor);
    return { resourceTemplates: [...page.items], ...nextOf(page.nextCursor) };
  }

  async read(uri: string, request: ClientRequest): Promise<ReadResourceResult | InputRequiredResult> {
    const place = await this.place(uri, request.client.caller, request.round.signal);
    const target = { supervised: place.supervised, method: 'resources/read', params: { uri: place.uri } } as const;
    const result = await this.#options.forwarder.run(target, request, () => Promise.resolve(() => undefined));
    if (isLargerThan(result, this.#options.limits.maxReplyBytes)) {
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'the resource is too large to be passed on');
    }
    return ANSWER.parse(result);
  }

  /** Where a resource is: listed, of a template, linked to by a result, or with the server's name in its URI. */
  async place(uri: string, caller: Caller, signal: AbortSignal): Promise<ResourcePlace> {
    const { catalog } = this.#options;
    const listings = await catalog.all('resources', caller, signal);
    const qualified = readQualifiedUri(uri);
    if (qualified !== null) {
      const named = listings.find(({ name }) => name === qualified.server);
      if (named === undefined) throw new ResourceNotFoundError(uri);
      return { supervised: named.supervised, uri: qualified.uri };
    }
    const listed = listings.filter(({ items }) => items.some((item) => item.uri === uri));
    const first = one(uri, listed);
    if (first !== null) return first;
    const templates = await catalog.all('templates', caller, signal);
    const ofTemplates = templates.filter(({ items }) => items.some((item) => matchesTemplate(item.uriTemplate, uri)));
    const linked = this.links.serversOf(caller, uri);
    const isOfTemplate = new Set(ofTemplates.map(({ supervised }) => supervised.server.id));
    const linking = listings.filter(
      ({ supervised: { server } }) => linked.includes(server.id) && !isOfTemplate.has(server.id),
    );
    // Both count alike: a template that takes everything does not get what another server's result named, nor the other way.
    const place = one(uri, [...ofTemplates, ...linking]);
    if (place === null) throw new ResourceNotFoundError(uri);
    return place;
  }

  #page<T>(items: readonly T[], keyOf: (item: T) => string, cursor: string | undefined) {
    const page = pageOf(sortedBy(items, keyOf), keyOf, cursor, this.#options.limits.pageItems);
    if (page === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'cursor is none that was given out');
    return page;
  }
}

function nextOf(nextCursor: string | undefined): { readonly nextCursor?: string } {
  return nextCursor === undefined ? {} : { nextCursor };
}

/** Null when none is meant; rejects when several are. */
function one(uri: string, listings: readonly ServerListing<'resources' | 'templates'>[]): ResourcePlace | null {
  const [first, second] = listings;
  if (first === undefined) return null;
  if (second === undefined) return { supervised: first.supervised, uri };
  const choices = listings.map(({ name }) => qualifiedUri(name, uri)).join(' or ');
  const message = `several servers have this resource; ask for ${choices}`;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}

const ANSWER = z.custom<ReadResourceResult | InputRequiredResult>();
