import { ok } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import {
  marketplaceDetail,
  marketplaceDetailQuery,
  marketplaceInstallInput,
  marketplaceInstallReply,
  marketplacePage,
  marketplaceParams,
  marketplacePreviewInput,
  marketplacePreviewReply,
  marketplaceQuery,
  upgradeInput,
  upgradeQuery,
  upgradeReply,
} from '../../../shared/wire/marketplace.ts';
import type { Result } from '../../../shared/model/result.ts';
import { forVisitors } from '../../marketplace/registry.ts';
import { browse } from '../../marketplace/browse.ts';
import { install } from '../../marketplace/install.ts';
import { previewInstall } from '../../marketplace/install_plan.ts';
import { showUpgrade, upgrade } from '../../marketplace/upgrade.ts';
import { mcpServerParams } from '../../../shared/wire/mcp_servers.ts';
import { showEntry } from '../../marketplace/detail.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import { takeClientAttempt, type Throttle } from '../../sign_in/throttle.ts';
import { forUser, forVisitor } from '../http/operation.ts';
import { changed, json } from '../http/replies.ts';

/** Who is not signed in may look so often, by address; on one's own machine nobody counts. */
const BROWSING: Throttle = { kind: 'marketplace', most: 120, windowSeconds: 60 };

/** What a call of somebody who looks works with. Refuses with `too_many_attempts`. */
export async function looking(
  context: ProgramContext,
  who: Caller | null,
  clientAddress: string | null,
): Promise<Result<ProgramContext, ApiError>> {
  if (who !== null || context.local !== null) return ok(context);
  const allowed = await takeClientAttempt(context, BROWSING, clientAddress);
  return allowed.ok ? ok({ ...context, registry: forVisitors(context.registry) }) : allowed;
}

export const getMarketplaceServers = forVisitor({
  summary: 'Browse or search the MCP registry',
  description:
    'Without sign-in too; then installed is false. Texts of an entry are its publisher’s. An answer is stale when the registry does not answer, and partial when it rests on the registry’s own search.',
  query: marketplaceQuery,
  replies: { 200: marketplacePage },
  async handle({ context, who, query, clientAddress }) {
    const visit = await looking(context, who, clientAddress);
    return visit.ok ? json(await browse(visit.value, who, query)) : visit;
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
    const visit = await looking(context, who, clientAddress);
    if (!visit.ok) return visit;
    return json(await showEntry(visit.value, who, { name: params.registryId, version: query.version ?? null }));
  },
});

export const postMarketplacePreview = forUser({
  summary: 'Show what an install would come to',
  description:
    'With the inputs that are given, and without installing anything. Values of secrets are shown as references.',
  params: marketplaceParams,
  body: marketplacePreviewInput,
  isBodyOptional: true,
  replies: { 200: marketplacePreviewReply },
  async handle({ context, params, body }) {
    return json(await previewInstall(context, params.registryId, body ?? {}));
  },
});

export const postMarketplaceInstall = forUser({
  summary: 'Install an MCP server from the registry',
  description:
    'Takes the best package (npm first), pins its version, and registers the server; what required_credentials names is stored next. One that is installed is answered with 200, as it is. Nothing is installed from what the registry said more than 15 minutes ago.',
  params: marketplaceParams,
  body: marketplaceInstallInput,
  isBodyOptional: true,
  replies: { 201: marketplaceInstallReply, 200: marketplaceInstallReply },
  async handle({ context, who, params, body }) {
    const installed = await install(context, who, params.registryId, body ?? {});
    return changed(installed, ({ reply, isNew }) => ({ status: isNew ? 201 : 200, json: reply }));
  },
});

export const getMcpUpgrade = forUser({
  summary: 'Show what an upgrade of an installed MCP server would change',
  description:
    'To the newest version of its registry entry, or to the one that is named: the difference, warnings, and inputs that have to be given.',
  params: mcpServerParams,
  query: upgradeQuery,
  replies: { 200: upgradeReply },
  async handle({ context, who, params, query }) {
    return json(await showUpgrade(context, who, params.id, query.version ?? null));
  },
});

export const postMcpUpgrade = forUser({
  summary: 'Upgrade an installed MCP server',
  description:
    'It gets a new revision; POST /v1/mcp-servers/{id}/rollback undoes it. What was typed at install is kept, and so are credentials.',
  params: mcpServerParams,
  body: upgradeInput,
  isBodyOptional: true,
  replies: { 200: marketplaceInstallReply },
  async handle({ context, who, params, body }) {
    return changed(await upgrade(context, who, params.id, body ?? {}), (reply) => ({ status: 200, json: reply }));
  },
});
