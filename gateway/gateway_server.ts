import {
  type CallToolResult,
  isInputRequiredResult,
  type LoggingLevel,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerCapabilities,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Caller } from '../machine/mcp_caller.ts';
import { type Gateway, newClientKey } from './gateway.ts';
import { type ClientRequest, clientRequest, type GatewayClient } from './fronts/gateway_client.ts';
import { isTaskResult, TASKS_CAPABILITY } from './tasks/task_messages.ts';

const CAPABILITIES: ServerCapabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
  ...TASKS_CAPABILITY,
};

const INSTRUCTIONS =
  'Tools and prompts of several MCP servers, each named <server>__<name>. A server that is starting, or that waits for ' +
  'consent or a credential, is left out; the list changes when it comes.';

/** How many times a call may ask its client for input before it is ended. */
const MAX_ROUNDS = 32;

/** The SDK's server for one client, and what to do when the client disconnects. */
export interface ServedClient {
  readonly server: Server;
  readonly client: GatewayClient;
}

/**
 * Creates the SDK's server for one client. With `connected`, the client has a connection: it is notified of changes, and its
 * calls end with the connection. Without, the server handles one request.
 */
export function gatewayServer(gateway: Gateway, caller: Caller, connected: boolean): ServedClient {
  const { limits, version } = gateway;
  const server = new Server(
    { name: 'svc', title: 'svc MCP gateway', version },
    {
      capabilities: CAPABILITIES,
      instructions: [INSTRUCTIONS, gateway.instructionsFor(caller)].filter((text) => text !== '').join('\n\n'),
      inputRequired: { maxRounds: MAX_ROUNDS, roundTimeoutMs: limits.inputMs },
    },
  );
  const level: { now: LoggingLevel | null } = { now: null };
  const client: GatewayClient = { key: connected ? newClientKey() : null, caller, logLevel: () => level.now };
  // The SDK answers unexpected messages of a client; nothing to do here.
  Object.assign(server, { onerror: () => undefined });
  serveTools(gateway, server, client);
  serveTasks(gateway, server, client);
  servePrompts(gateway, server, client);
  serveResources(gateway, server, client);
  server.setRequestHandler('logging/setLevel', ({ params }) => {
    level.now = params.level;
    gateway.logLevelChanged();
    return {};
  });
  if (client.key !== null) join(gateway, server, client, client.key);
  return { server, client };
}

function serveTools(gateway: Gateway, server: Server, client: GatewayClient): void {
  server.setRequestHandler('tools/list', ({ params }, ctx) =>
    gateway.tools.list(client.caller, params?.cursor, ctx.mcpReq.signal),
  );
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const call = { name: params.name, args: params.arguments };
    const { result, tool } = await gateway.tools.call(call, clientRequest(client, server, ctx));
    if (isInputRequiredResult(result)) return result;
    if (isTaskResult(result)) return TOOL_RESULT.parse(result);
    return server.projectCallToolResult(result, tool?.outputSchema);
  });
}

/** The SDK knows only results of tools; it sends another type of result as it is. */
const TOOL_RESULT = z.custom<CallToolResult>();

/** The methods of the tasks extension (SEP-2663). The methods of the earlier generation's tasks are not served. */
function serveTasks({ tasks }: Gateway, server: Server, client: GatewayClient): void {
  const schemas = { params: z.object({ taskId: z.string() }) };
  const read = (ctx: ServerContext): ClientRequest => {
    const request = clientRequest(client, server, ctx);
    if (ctx.mcpReq.envelope === undefined)
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Method not found');
    if (!request.hasTasks) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: TASKS_CAPABILITY });
    return request;
  };
  server.setRequestHandler('tasks/get', schemas, ({ taskId }, ctx) =>
    tasks.get(taskId, read(ctx), (result, { outputSchema }) => server.projectCallToolResult(result, outputSchema)),
  );
  server.setRequestHandler('tasks/update', schemas, ({ taskId }, ctx) => tasks.update(taskId, read(ctx)));
  server.setRequestHandler('tasks/cancel', schemas, ({ taskId }, ctx) => tasks.cancel(taskId, read(ctx)));
}

function servePrompts(gateway: Gateway, server: Server, client: GatewayClient): void {
  server.setRequestHandler('prompts/list', ({ params }, ctx) =>
    gateway.prompts.list(client.caller, params?.cursor, ctx.mcpReq.signal),
  );
  server.setRequestHandler('prompts/get', ({ params }, ctx) =>
    gateway.prompts.get(params.name, params.arguments, clientRequest(client, server, ctx)),
  );
  server.setRequestHandler('completion/complete', ({ params }, ctx) =>
    gateway.prompts.complete(params, client.caller, ctx.mcpReq.signal),
  );
}

function serveResources(gateway: Gateway, server: Server, client: GatewayClient): void {
  const { resources, subscriptions } = gateway;
  server.setRequestHandler('resources/list', ({ params }, ctx) =>
    resources.list(client.caller, params?.cursor, ctx.mcpReq.signal),
  );
  server.setRequestHandler('resources/templates/list', ({ params }, ctx) =>
    resources.templates(client.caller, params?.cursor, ctx.mcpReq.signal),
  );
  server.setRequestHandler('resources/read', ({ params }, ctx) =>
    resources.read(params.uri, clientRequest(client, server, ctx)),
  );
  server.setRequestHandler('resources/subscribe', async ({ params }, ctx) => {
    const place = await resources.findServer(params.uri, client.caller, ctx.mcpReq.signal);
    if (client.key !== null) await subscriptions.add(client.key, params.uri, place);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', async ({ params }) => {
    if (client.key !== null) await subscriptions.remove(client.key, params.uri);
    return {};
  });
}

function join(gateway: Gateway, server: Server, client: GatewayClient, key: string): void {
  gateway.audience.add({
    key,
    caller: client.caller,
    logLevel: () => client.logLevel(),
    listChanged(kind) {
      if (kind === 'tools') ignoreFailure(server.sendToolListChanged());
      else if (kind === 'prompts') ignoreFailure(server.sendPromptListChanged());
      else ignoreFailure(server.sendResourceListChanged());
    },
    resourceUpdated: (uri) => ignoreFailure(server.sendResourceUpdated({ uri })),
    log: (params) => ignoreFailure(server.notification({ method: 'notifications/message', params })),
  });
  Object.assign(server, { onclose: () => gateway.leave(key) });
}

/** A disconnected client is not notified. */
function ignoreFailure(sent: Promise<void>): void {
  sent.catch(() => undefined);
}
