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
import type { Caller } from '../../machine/mcp_caller.ts';
import { UNRECORDED } from './call_registry.ts';
import type { Forwarder } from './forwarder.ts';
import type { ClientRequest } from '../fronts/gateway_client.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import { isLargerThan } from './json_size.ts';
import { LinkedResources } from './linked_resources.ts';
import { pageOf, sortBy } from './page.ts';
import { qualifyUri, readQualifiedUri } from './qualified_uri.ts';
import { type Claimant, ResourceClaims } from './resource_claims.ts';
import { withErrorMarks, withResultMarks } from './result_marks.ts';
import type { ServerCatalog, ServerListing } from './server_catalog.ts';
import { withMarks } from './tool_reviews.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';

interface ResourceRouterOptions {
  readonly catalog: Pick<ServerCatalog, 'listAll' | 'listKnown' | 'findServer'>;
  readonly forwarder: Forwarder;
  readonly limits: GatewayLimits;
}

/** The server of a resource, and the resource's own URI there. */
export interface ResourceAtServer {
  readonly supervised: SupervisedServer;
  readonly uri: string;
}

/**
 * Routes resources. They keep their URIs, because tool results use them too. A URI that two servers claim is listed with the
 * server's name in it and refused without it, so that neither can impersonate the other.
 */
export class ResourceRouter {
  readonly links = new LinkedResources();
  readonly #options: ResourceRouterOptions;

  constructor(options: ResourceRouterOptions) {
    this.#options = options;
  }

  async list(caller: Caller, cursor: string | undefined, signal: AbortSignal): Promise<ListResourcesResult> {
    const claims = await this.#claims(caller, signal);
    const all = claims.listings.flatMap(({ name, items }) => items.map((item) => ({ name, item })));
    const page = this.#page(all, ({ name, item }) => `${item.uri} ${name}`, cursor);
    const shown = page.items.map(({ name, item }): Resource => {
      const marked = withMarks(item);
      return claims.isContested(item.uri) ? { ...marked, uri: qualifyUri(name, item.uri) } : marked;
    });
    return { resources: shown, ...nextOf(page.nextCursor) };
  }

  async templates(
    caller: Caller,
    cursor: string | undefined,
    signal: AbortSignal,
  ): Promise<ListResourceTemplatesResult> {
    const listings = await this.#options.catalog.listAll('templates', caller, signal);
    const byTemplate = new Map<string, ResourceTemplateType>();
    for (const { items } of listings) {
      for (const item of items) if (!byTemplate.has(item.uriTemplate)) byTemplate.set(item.uriTemplate, item);
    }
    const page = this.#page([...byTemplate.values()], ({ uriTemplate }) => uriTemplate, cursor);
    return { resourceTemplates: page.items.map(withMarks), ...nextOf(page.nextCursor) };
  }

  async read(uri: string, request: ClientRequest): Promise<ReadResourceResult | InputRequiredResult> {
    const place = await this.findServer(uri, request.client.caller, request.round.signal);
    const target = { supervised: place.supervised, method: 'resources/read', params: { uri: place.uri } } as const;
    const result = await this.#options.forwarder.run(target, request, unrecorded).catch((error: unknown) => {
      throw withErrorMarks(error);
    });
    if (isLargerThan(result, this.#options.limits.maxReplyBytes)) {
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'the resource is too large');
    }
    return withResultMarks(ANSWER.parse(result));
  }

  /**
   * Finds a resource's server: by list, template, link in a result, or the server's name in its URI. Servers are only asked if what
   * is known of them does not answer it: one that hangs must not hold up a resource of another.
   */
  async findServer(uri: string, caller: Caller, signal: AbortSignal): Promise<ResourceAtServer> {
    const { catalog } = this.#options;
    const known = await this.#knownClaims(caller, signal);
    const qualified = readQualifiedUri(uri);
    if (qualified !== null) {
      const named = catalog.findServer(qualified.server, caller);
      if (named === null) throw new ResourceNotFoundError(uri);
      return { supervised: named, uri: qualified.uri };
    }
    const claimants = known?.claimantsOf(uri) ?? [];
    if (claimants.length > 0) return chooseClaimant(uri, claimants);
    const claims = await this.#claims(caller, signal);
    return chooseClaimant(uri, claims.claimantsOf(uri));
  }

  async #knownClaims(caller: Caller, signal: AbortSignal): Promise<ResourceClaims | null> {
    const { catalog } = this.#options;
    const listings = await catalog.listKnown('resources', caller, signal);
    const templates = await catalog.listKnown('templates', caller, signal);
    if (listings === null || templates === null) return null;
    return this.#claimsOf(listings, templates, caller);
  }

  async #claims(caller: Caller, signal: AbortSignal): Promise<ResourceClaims> {
    const { catalog } = this.#options;
    const [listings, templates] = await Promise.all([
      catalog.listAll('resources', caller, signal),
      catalog.listAll('templates', caller, signal),
    ]);
    return this.#claimsOf(listings, templates, caller);
  }

  #claimsOf(
    listings: readonly ServerListing<'resources'>[],
    templates: readonly ServerListing<'templates'>[],
    caller: Caller,
  ): ResourceClaims {
    return new ResourceClaims({ listings, templates, findLinking: (uri) => this.links.serversOf(caller, uri) });
  }

  #page<T>(items: readonly T[], keyOf: (item: T) => string, cursor: string | undefined) {
    const page = pageOf(sortBy(items, keyOf), keyOf, cursor, this.#options.limits.pageItems);
    if (page === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'invalid cursor');
    return page;
  }
}

/** Only calls of tools are recorded. */
const unrecorded = () => Promise.resolve(UNRECORDED);

function nextOf(nextCursor: string | undefined): { readonly nextCursor?: string } {
  return nextCursor === undefined ? {} : { nextCursor };
}

/** Rejects if no server or several match. */
function chooseClaimant(uri: string, claimants: readonly Claimant[]): ResourceAtServer {
  const [first, second] = claimants;
  if (first === undefined) throw new ResourceNotFoundError(uri);
  if (second === undefined) return { supervised: first.supervised, uri };
  const choices = claimants.map(({ name }) => qualifyUri(name, uri)).join(' or ');
  const message = `several servers have this resource; ask for ${choices}`;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}

const ANSWER = z.custom<ReadResourceResult | InputRequiredResult>();
