import type { McpRequestContext, Server } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { parseJson } from '../../../shared/model/json.ts';
import { HEADER_MISMATCH } from '../../../shared/mcp/tools/param_headers.ts';
import { MCP_SCOPE } from '../../../shared/wire/mcp/mcp_clients.ts';
import { jsonCostProblem } from '../../../shared/wire/json_scan.ts';
import { endOfWait } from '../../kernel/lifetime.ts';
import { VERSION } from '../../services/people/account.ts';
import { HeaderMismatch, type ServedRequest } from '../../services/mcp/served/served_request.ts';
import { callServedTool, listServedTools } from '../../services/mcp/served/served_tools.ts';
import { authenticateMcpClient, type McpClientCall } from '../../tokens/mcp/mcp_connections.ts';
import type { AppContext } from '../http/app_env.ts';
import { readBody } from '../http/late_body.ts';
import { resourceMetadataUrl } from './oauth_endpoints.ts';
import { whereServed } from './public_server.ts';

/** `POST /mcp`: a message of a connected MCP client, by streamable HTTP without sessions. */
export const postMcp = whereServed(async (c, publicUrl) => {
  const first = await authenticate(c);
  if (first === null) return challenge(c, publicUrl);
  if (!isExpectedOrigin(c, publicUrl, first)) return refuse(c, 403, 'this page is not one of the connected client');
  const context = c.get('context');
  const { body: text, isLate } = await readBody(c, () => c.req.text());
  const call = isLate ? await authenticate(c) : first;
  if (call === null) return challenge(c, publicUrl);
  const cost = jsonCostProblem(text);
  if (cost !== null) return refuse(c, 413, `the message ${cost}`);
  const body = parseJson(text);
  if (body === undefined) return refuse(c, 400, 'the message is not JSON', -32_700);
  if (Array.isArray(body)) return refuse(c, 400, 'send one message at a time: batches are not supported');
  const slot = context.openCalls.enter('mcp request', call.caller.userId);
  if (!slot.ok) return refuse(c, 429, slot.error.message);
  try {
    const signal = endOfWait(c.req.raw, context);
    const { caller, clientId: id, clientName: name, connectionId, hasOperations } = call;
    return await answerMessage(c, body, { context, caller, client: { id, name, connectionId }, hasOperations, signal });
  } finally {
    slot.value();
  }
});

async function authenticate(c: AppContext): Promise<McpClientCall | null> {
  const token = /^Bearer +([\w.~+/=-]+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
  return token === undefined ? null : authenticateMcpClient(c.get('context'), token);
}

/** RFC 9728 section 5.1: where a client learns how to get a token. */
function challenge(c: AppContext, publicUrl: string): Response {
  const error = c.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  const where = `resource_metadata="${resourceMetadataUrl(publicUrl)}"`;
  c.header('www-authenticate', `Bearer ${where}, scope="${MCP_SCOPE}"${error}`);
  return refuse(c, 401, 'connect this client first: the WWW-Authenticate header says where');
}

/**
 * A browser names the page that calls. Only pages of the client's own site may use its token, and our own (revision
 * 2025-11-25, Transports: validate the Origin header). Other programs send none.
 */
function isExpectedOrigin(c: AppContext, publicUrl: string, { redirectOrigin }: McpClientCall): boolean {
  const origin = c.req.header('origin');
  return origin === undefined || origin === publicUrl || origin === redirectOrigin;
}

function refuse(
  c: AppContext,
  status: 400 | 401 | 403 | 413 | 429,
  message: string,
  code = -32_600,
  id: string | number | null = null,
): Response {
  return c.json({ jsonrpc: '2.0', error: { code, message }, id }, status);
}

/** Answered by the SDK, in either generation of the protocol. The reply is complete when this returns. */
async function answerMessage(c: AppContext, body: unknown, request: ServedRequest): Promise<Response> {
  const sdk = await import('@modelcontextprotocol/server');
  const failures: unknown[] = [];
  const serve = ({ era }: Pick<McpRequestContext, 'era'>): Server => {
    const server = new sdk.Server(
      { name: 'svc', title: 'svc', version: VERSION },
      { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
    );
    Object.assign(server, { onerror: () => undefined });
    const headers = era === 'modern' ? c.req.raw.headers : null;
    serveTools(server, request, headers, {
      unknown: (name) => {
        const shown = JSON.stringify(name.slice(0, 128));
        return new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, `Unknown tool: ${shown}`);
      },
      failed: (error) => failures.push(error),
    });
    return server;
  };
  const handler = sdk.createMcpHandler(serve, { maxSubscriptions: 0, keepAliveMs: 0 });
  const reply = await handler.fetch(c.req.raw, { parsedBody: body });
  const content = await reply.arrayBuffer();
  const [failure] = failures;
  if (failure instanceof HeaderMismatch) return refuse(c, 400, failure.message, HEADER_MISMATCH, idOf(body));
  if (failures.length > 0) throw failures[0];
  const type = reply.headers.get('content-type');
  const headers = { ...(type !== null && { 'content-type': type }) };
  return new Response(content.byteLength === 0 ? null : content, { status: reply.status, headers });
}

const withId = z.looseObject({ id: z.union([z.string(), z.number()]) });

function idOf(body: unknown): string | number | null {
  return withId.safeParse(body).data?.id ?? null;
}

const INSTRUCTIONS =
  'Tools of several remote MCP servers, each named <server>__<tool>, and operations of connectors, each named svc_run__<connector>__<operation>. A server that cannot be reached, or that waits for a credential, is left out; _meta["svc/unavailable"] of the list says why.';

interface Problems {
  /** The error for a tool that does not exist. */
  readonly unknown: (name: string) => Error;
  /** Takes an error of ours, for the log. The SDK would send its message to the client. */
  readonly failed: (error: unknown) => void;
}

function serveTools(
  server: Server,
  request: ServedRequest,
  headers: Headers | null,
  { unknown, failed }: Problems,
): void {
  const orFailed = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      failed(error);
      throw error;
    }
  };
  server.setRequestHandler('tools/list', async () => {
    const { tools, unavailable } = await orFailed(listServedTools(request));
    const hasAll = Object.keys(unavailable).length === 0;
    return { tools: [...tools], ...(!hasAll && { _meta: { 'svc/unavailable': unavailable } }) };
  });
  server.setRequestHandler('tools/call', async ({ params }) => {
    const call = { name: params.name, args: params.arguments ?? {}, headers };
    const called = await orFailed(callServedTool(request, call));
    if (called === null) throw unknown(params.name);
    return server.projectCallToolResult(called.result, called.outputSchema);
  });
}
