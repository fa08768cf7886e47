import {
  type CompleteRequestParams,
  type CompleteResult,
  type GetPromptResult,
  type InputRequiredResult,
  type ListPromptsResult,
  type Prompt,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { formatToolName } from '../../shared/mcp/tool_names.ts';
import type { Caller } from '../../machine/mcp_caller.ts';
import type { Fleet } from '../servers/fleet.ts';
import { UNRECORDED } from './call_registry.ts';
import type { Forwarder } from './forwarder.ts';
import type { ClientRequest } from '../fronts/gateway_client.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import { maskError } from '../servers/mask_error.ts';
import { pageOf, sortBy } from './page.ts';
import type { ToolReviews } from './tool_reviews.ts';
import { readQualifiedUri } from './qualified_uri.ts';
import { withErrorMarks, withResultMarks } from './result_marks.ts';
import type { ServerCatalog, ServerListing } from './server_catalog.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import { unavailableError } from '../servers/server_unavailable.ts';
import { dropStale } from '../servers/stale_connection.ts';
import { waitUnlessAborted } from '../servers/wait_unless_aborted.ts';
import { sha256Hex } from '../../machine/sha256.ts';

interface PromptRouterOptions {
  readonly fleet: Fleet;
  readonly catalog: ServerCatalog;
  readonly forwarder: Forwarder;
  readonly limits: GatewayLimits;
  readonly reviews: Pick<ToolReviews<Prompt>, 'offer' | 'mayCall' | 'show'>;
}

/** A prompt of a server, with the server's own name for it. */
interface Found {
  readonly supervised: SupervisedServer;
  readonly prompt: string;
}

/** Prompts, named like tools, and completion for arguments of prompts and resource templates. */
export class PromptRouter {
  readonly #options: PromptRouterOptions;

  constructor(options: PromptRouterOptions) {
    this.#options = options;
  }

  async list(caller: Caller, cursor: string | undefined, signal: AbortSignal): Promise<ListPromptsResult> {
    const { catalog, limits, reviews } = this.#options;
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.listMs + limits.reportMs)]);
    const listings = await catalog.listAll('prompts', caller, signal);
    const offered = await Promise.all(
      listings.map(async ({ supervised, name, items }) => {
        const prompts = await reviews.offer(supervised, items, deadline);
        return prompts.map((item) => ({ ...reviews.show(item), name: formatToolName(name, item.name, sha256Hex) }));
      }),
    );
    const prompts = offered.flat();
    const page = pageOf(
      sortBy(prompts, ({ name }) => name),
      ({ name }) => name,
      cursor,
      limits.pageItems,
    );
    if (page === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'invalid cursor');
    const { items, nextCursor } = page;
    return { prompts: [...items], ...(nextCursor === undefined ? {} : { nextCursor }) };
  }

  async get(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    request: ClientRequest,
  ): Promise<GetPromptResult | InputRequiredResult> {
    const { supervised, prompt } = await this.#find(name, request.client.caller, request.round.signal);
    const params = { name: prompt, ...(args === undefined ? {} : { arguments: args }) };
    const target = { supervised, method: 'prompts/get', params } as const;
    const result = await this.#options.forwarder.run(target, request, unrecorded).catch((error: unknown) => {
      throw withErrorMarks(error);
    });
    return withResultMarks(ANSWER.parse(result));
  }

  async complete(params: CompleteRequestParams, caller: Caller, signal: AbortSignal): Promise<CompleteResult> {
    const { ref } = params;
    const place =
      ref.type === 'ref/prompt'
        ? await this.#find(ref.name, caller, signal).then(({ supervised, prompt }) => ({
            supervised,
            ref: { ...ref, name: prompt },
          }))
        : await this.#template(ref.uri, caller, signal);
    if (place === null) return NOTHING;
    const downstream = await this.#options.forwarder.connection(place.supervised, signal);
    if (downstream.client.getServerCapabilities()?.completions === undefined) return NOTHING;
    const timeout = this.#options.limits.requestMs;
    try {
      const result = await downstream.client.complete({ ...params, ref: place.ref }, { signal, timeout });
      return downstream.mask.maskValue(result);
    } catch (error) {
      // The next request finds a new session, or the reason why there is none.
      await dropStale(place.supervised, downstream, error);
      throw maskError(error, downstream.mask);
    }
  }

  async #template(uri: string, caller: Caller, signal: AbortSignal) {
    const { catalog } = this.#options;
    const qualified = readQualifiedUri(uri);
    const wanted = qualified?.uri ?? uri;
    const findIn = (listings: readonly ServerListing<'templates'>[]) =>
      listings.find(
        ({ name, items }) =>
          (qualified === null || qualified.server === name) && items.some(({ uriTemplate }) => uriTemplate === wanted),
      );
    const known = findIn((await catalog.listKnown('templates', caller, signal)) ?? []);
    const found = known ?? findIn(await catalog.listAll('templates', caller, signal));
    if (found === undefined) return null;
    return { supervised: found.supervised, ref: { type: 'ref/resource' as const, uri: wanted } };
  }

  async #find(name: string, caller: Caller, signal: AbortSignal): Promise<Found> {
    const { fleet, catalog, limits, reviews } = this.#options;
    await waitUnlessAborted(fleet.listed, AbortSignal.any([signal, AbortSignal.timeout(limits.listWaitMs)]));
    const supervised = fleet.findByToolName(name, caller);
    if (supervised === null) throw unknownPromptError(name);
    // A prompt of the last run may be asked for while its server still starts.
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.startMs)]);
    await waitUnlessAborted(supervised.connectPatiently(), deadline);
    let found = await this.#findListed(supervised, name, signal);
    if (found === null) {
      if (supervised.current === null) throw unavailableError(fleet.nameOf(supervised.server.id), supervised);
      catalog.forget('prompts', supervised.server.id);
      found = await this.#findListed(supervised, name, signal);
    }
    if (found === null) throw unknownPromptError(name);
    const { prompt, listed } = found;
    const mayGet = await reviews.mayCall(supervised, prompt, listed, AbortSignal.timeout(limits.listMs));
    if (mayGet) return { supervised, prompt: prompt.name };
    const command = `svc mcp tools ${supervised.server.name}`;
    const message = `this prompt is new or has changed, and waits until a person has looked at it: ${command}`;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  }

  async #findListed(supervised: SupervisedServer, name: string, signal: AbortSignal) {
    const listing = await this.#options.catalog.listOne('prompts', supervised, signal);
    const prompt = listing?.items.find((item) => formatToolName(listing.name, item.name, sha256Hex) === name);
    return listing === null || prompt === undefined ? null : { prompt, listed: listing.items };
  }
}

/** Only calls of tools are recorded. */
const unrecorded = () => Promise.resolve(UNRECORDED);

function unknownPromptError(name: string): ProtocolError {
  const shown = JSON.stringify(name.slice(0, 128));
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${shown}`);
}

const ANSWER = z.custom<GetPromptResult | InputRequiredResult>();
const NOTHING: CompleteResult = { completion: { values: [] } };
