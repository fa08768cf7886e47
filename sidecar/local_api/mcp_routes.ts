import type { Hono } from 'hono';
import { z } from 'zod';
import { id } from '../../shared/wire/primitives.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import type { LocalEnv } from './local_env.ts';
import { errorReply, localError } from './local_error.ts';
import type { McpOptions } from './mcp_options.ts';
import { OpenRequests, proxyMcp } from './mcp_proxy.ts';
import { releaseValues } from './mcp_release.ts';
import { approveTool, GatewayEvents, takeHealth } from './mcp_reports.ts';
import {
  allowServerHosts,
  giveConsent,
  listServers,
  reportTools,
  serverLogs,
  showIsolation,
  withdrawConsent,
} from './mcp_servers.ts';
import {
  approvalInput,
  consentInput,
  eventsInput,
  healthInput,
  isolationQuery,
  releaseInput,
  serverHostsInput,
  serversQuery,
  toolsInput,
} from '../../shared/wire/mcp/mcp_gateway.ts';
import { replyOf } from './reply_of.ts';
import { checkInput, inputOf } from './request_input.ts';

type LocalApi = Hono<LocalEnv>;

const TOKEN_REQUIRED = localError(
  'unauthenticated',
  'Give the token in host.token of the state directory, or the session’s token (SVC_TOKEN), as a bearer token.',
);
const serverParams = z.object({ id: id('mcp') });

/**
 * `/v1/mcp`, for the host token and for sessions. It comes before the body limit of other routes: a tool's arguments may be
 * larger, and a client may listen for as long as it likes.
 */
export function addMcpEndpoint(app: LocalApi, { mcp }: LocalApiOptions): void {
  if (mcp === undefined) return;
  const open = new OpenRequests();
  app.all('/v1/mcp', async (c) => {
    const caller = c.get('caller');
    if (caller.kind === 'host' || caller.kind === 'session') return proxyMcp(mcp, caller, c.env, open);
    return errorReply(TOKEN_REQUIRED);
  });
}

/** Endpoints for gateways and the CLI. They need the host token, which is checked before. */
export function addMcpRoutes(app: LocalApi, options: LocalApiOptions): void {
  const { mcp } = options;
  if (mcp === undefined) return;
  const withMcp = { ...options, mcp };
  addServerRoutes(app, withMcp);
  app.get('/v1/mcp/gateway', (c) => c.json(mcp.facts));
  const events = new GatewayEvents(options.audit);
  app.post('/v1/mcp/events', async (c) => {
    const input = await inputOf(c.req.raw, eventsInput);
    return replyOf(input.ok ? { ok: true, value: events.take(input.value) } : input);
  });
  app.post('/v1/mcp/health', async (c) => {
    const input = await inputOf(c.req.raw, healthInput);
    return replyOf(input.ok ? { ok: true, value: takeHealth(mcp, input.value) } : input);
  });
  app.post('/v1/mcp/tools', async (c) => {
    const input = await inputOf(c.req.raw, toolsInput);
    return replyOf(input.ok ? await reportTools(withMcp, input.value) : input);
  });
  app.post('/v1/mcp/approvals', async (c) => {
    const input = await inputOf(c.req.raw, approvalInput);
    return replyOf(input.ok ? await approveTool(withMcp, input.value, c.req.raw.signal) : input);
  });
}

function addServerRoutes(app: LocalApi, options: LocalApiOptions & { readonly mcp: McpOptions }): void {
  const { mcp, audit } = options;
  const path = '/v1/mcp/servers';
  app.get(path, async (c) => {
    const query = checkInput(serversQuery, c.req.query());
    return replyOf(query.ok ? await listServers(options, query.value, c.req.raw.signal) : query);
  });
  app.post(`${path}/:id/release`, async (c) => {
    const named = checkInput(serverParams, c.req.param());
    if (!named.ok) return errorReply(named.error);
    const input = await inputOf(c.req.raw, releaseInput);
    if (!input.ok) return errorReply(input.error);
    return replyOf(await releaseValues(mcp, audit, named.value.id, input.value));
  });
  app.post(`${path}/:id/consent`, async (c) => {
    const named = checkInput(serverParams, c.req.param());
    if (!named.ok) return errorReply(named.error);
    const input = await inputOf(c.req.raw, consentInput);
    return replyOf(input.ok ? await giveConsent(options, named.value.id, input.value) : input);
  });
  app.delete(`${path}/:id/consent`, async (c) => {
    const named = checkInput(serverParams, c.req.param());
    return replyOf(named.ok ? await withdrawConsent(mcp, named.value.id) : named);
  });
  app.post(`${path}/:id/hosts`, async (c) => {
    const named = checkInput(serverParams, c.req.param());
    if (!named.ok) return errorReply(named.error);
    const input = await inputOf(c.req.raw, serverHostsInput);
    return replyOf(input.ok ? await allowServerHosts(mcp, named.value.id, input.value) : input);
  });
  app.get('/v1/mcp/isolation', async (c) => {
    const query = checkInput(isolationQuery, c.req.query());
    return replyOf(query.ok ? await showIsolation(options.listeners, query.value) : query);
  });
  app.get('/v1/mcp/logs/:id', (c) => {
    const named = checkInput(serverParams, c.req.param());
    return replyOf(named.ok ? serverLogs(mcp, named.value.id) : named);
  });
}
