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
  marketplaceReadme,
  upgradeInput,
  upgradeQuery,
  upgradeReply,
} from '../../../shared/wire/marketplace.ts';
import type { Result } from '../../../shared/model/result.ts';
import { forVisitors } from '../../marketplace/registry.ts';
import { browse } from '../../marketplace/browse.ts';
import { install } from '../../marketplace/install.ts';
import { findReadme } from '../../marketplace/find_readme.ts';
import { previewInstall } from '../../marketplace/install_plan.ts';
import { showUpgrade, upgrade } from '../../marketplace/upgrade.ts';
import { mcpServerParams } from '../../../shared/wire/mcp/mcp_servers.ts';
import { showEntry } from '../../marketplace/show_entry.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import { takeClientAttempt, type Throttle } from '../../sign_in/throttle.ts';
import { forUser, forVisitor } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

/** The limit by address for callers who are not signed in; none on one's own machine. */
const BROWSING: Throttle = { kind: 'marketplace', most: 120, windowSeconds: 60 };

/** The context for callers of the public operations. Refuses with `too_many_attempts`. */
export async function browsingContext(
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
    "Also without sign-in; then installed is false. An entry's texts are its publisher’s. A reply is stale if the registry does not answer, and partial if it uses the registry’s own search.",
  query: marketplaceQuery,
  replies: { 200: marketplacePage },
  async handle({ context, who, query, clientAddress }) {
    const visit = await browsingContext(context, who, clientAddress);
    return visit.ok ? jsonReply(await browse(visit.value, who, query)) : visit;
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
    const visit = await browsingContext(context, who, clientAddress);
    if (!visit.ok) return visit;
    return jsonReply(await showEntry(visit.value, who, { name: params.registryId, version: query.version ?? null }));
  },
});

export const getMarketplaceReadme = forUser({
  summary: 'Show the README of an entry of the MCP registry',
  description:
    'As plain text, from the package or the repository that the entry names. What a reader of the page would not see (comments, hidden characters) is left out or shown.',
  params: marketplaceParams,
  query: marketplaceDetailQuery,
  replies: { 200: marketplaceReadme },
  async handle({ context, params, query }) {
    return jsonReply(await findReadme(context, { name: params.registryId, version: query.version ?? null }));
  },
});

export const postMarketplacePreview = forUser({
  summary: 'Preview an install',
  description:
    'With the inputs that are given, and without installing anything. Values of secrets are shown as references.',
  params: marketplaceParams,
  body: marketplacePreviewInput,
  isBodyOptional: true,
  replies: { 200: marketplacePreviewReply },
  async handle({ context, who, params, body }) {
    return jsonReply(await previewInstall(context, who, params.registryId, body ?? {}));
  },
});

export const postMarketplaceInstall = forUser({
  summary: 'Install an MCP server from the registry',
  description:
    'Chooses the best package (npm first), pins its version and registers the server; then store what required_credentials names. If it is installed already, it is returned unchanged with 200. Registry data older than 15 minutes is never installed.',
  params: marketplaceParams,
  body: marketplaceInstallInput,
  isBodyOptional: true,
  replies: { 201: marketplaceInstallReply, 200: marketplaceInstallReply },
  async handle({ context, who, params, body }) {
    const installed = await install(context, who, params.registryId, body ?? {});
    return changeReply(installed, ({ reply, isNew }) => ({ status: isNew ? 201 : 200, json: reply }));
  },
});

export const getMcpUpgrade = forUser({
  summary: 'Preview an upgrade of an installed MCP server',
  description:
    'To the newest version of its registry entry, or the named one: differences, warnings and missing inputs.',
  params: mcpServerParams,
  query: upgradeQuery,
  replies: { 200: upgradeReply },
  async handle({ context, who, params, query }) {
    return jsonReply(await showUpgrade(context, who, params.id, query.version ?? null));
  },
});

export const postMcpUpgrade = forUser({
  summary: 'Upgrade an installed MCP server',
  description:
    'Creates a new revision; POST /v1/mcp-servers/{id}/rollback undoes it. Inputs of the install and credentials are kept.',
  params: mcpServerParams,
  body: upgradeInput,
  isBodyOptional: true,
  replies: { 200: marketplaceInstallReply },
  async handle({ context, who, params, body }) {
    return changeReply(await upgrade(context, who, params.id, body ?? {}), (reply) => ({ status: 200, json: reply }));
  },
});
