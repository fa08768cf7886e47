import { ok } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import {
  marketplaceDetail,
  marketplaceDetailQuery,
  marketplacePage,
  marketplaceParams,
  marketplaceQuery,
} from '../../shared/wire/marketplace.ts';
import type { Result } from '../../shared/model/result.ts';
import { browse } from '../marketplace/browse.ts';
import { showEntry } from '../marketplace/detail.ts';
import type { Caller } from '../services/caller.ts';
import type { ServiceContext } from '../services/service_context.ts';
import { takeClientAttempt, type Throttle } from '../sign_in/throttle.ts';
import { forVisitor } from './operation.ts';
import { json } from './replies.ts';

/** Who is not signed in may look so often, by address; on one's own machine nobody counts. */
const BROWSING: Throttle = { kind: 'marketplace', most: 300, windowSeconds: 300 };

function mayBrowse(
  context: ServiceContext,
  who: Caller | null,
  clientAddress: string | null,
): Promise<Result<void, ApiError>> | Result<void, ApiError> {
  const isCounted = who === null && context.local === null;
  return isCounted ? takeClientAttempt(context, BROWSING, clientAddress) : ok(undefined);
}

export const getMarketplaceServers = forVisitor({
  summary: 'Browse or search the MCP registry',
  description:
    'Without sign-in too; then installed is false. Texts of an entry are its publisher’s. An answer is stale when the registry does not answer, and partial when it rests on the registry’s own search.',
  query: marketplaceQuery,
  replies: { 200: marketplacePage },
  async handle({ context, who, query, clientAddress }) {
    const allowed = await mayBrowse(context, who, clientAddress);
    return allowed.ok ? json(await browse(context, who, query)) : allowed;
  },
});

export const getMarketplaceServer = forVisitor({
  summary: 'Show an entry of the MCP registry',
  description:
    'With its versions, the ways to install it and why others cannot be, and what an install comes to: the exact command or URL, what is asked for, and warnings.',
  params: marketplaceParams,
  query: marketplaceDetailQuery,
  replies: { 200: marketplaceDetail },
  async handle({ context, who, params, query, clientAddress }) {
    const allowed = await mayBrowse(context, who, clientAddress);
    if (!allowed.ok) return allowed;
    return json(await showEntry(context, who, { name: params.registryId, version: query.version ?? null }));
  },
});
