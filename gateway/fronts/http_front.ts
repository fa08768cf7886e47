import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpHttpHandler,
  originValidationResponse,
  readRequestBody,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { jsonCostProblem } from '../../shared/wire/json_scan.ts';
import { CALLER_HEADER, type Caller, readCallerHeader } from '../../machine/mcp_caller.ts';
import type { Gateway } from '../gateway.ts';
import { newClientKey } from '../gateway.ts';
import { gatewayServer } from '../gateway_server.ts';
import { HttpSessions, keyOf, refuseRequest, withReadEnd } from './http_sessions.ts';
import { listUris, subscribeAll } from './listen_uris.ts';

interface HttpFrontOptions {
  readonly gateway: Gateway;
  readonly now: () => number;
  /** Callers with requests of their own (without a session) at a time. */
  readonly maxCallers?: number;
}

export interface HttpFront {
  /** Answers one request of a caller that is already authenticated. */
  fetch(request: Request, caller: Caller): Promise<Response>;
  close(): Promise<void>;
}

/** One handler per caller, so that its subscriptions cover only servers that the caller may use. */
interface StatelessCaller {
  readonly handler: McpHttpHandler;
  readonly clientKey: string;
  usedAt: number;
  /** Requests that are being answered, and open streams. */
  open: number;
}

const MOST_CALLERS = 256;

/** MCP over streamable HTTP in both generations: independent requests, and sessions. */
export function createHttpFront(options: HttpFrontOptions): HttpFront {
  const { gateway, now, maxCallers = MOST_CALLERS } = options;
  const sessions = new HttpSessions(gateway, now);
  const callers = new Map<string, StatelessCaller>();
  const hosts = localhostAllowedHostnames();
  const origins = localhostAllowedOrigins();
  return {
    async fetch(request, caller) {
      const rejected = hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, origins);
      if (rejected !== undefined) return rejected;
      const read = await bodyOf(request, gateway.limits.maxMessageBytes);
      if (read instanceof Response) return read;
      const isLegacy = await isLegacyRequest(request, read.body);
      if (isLegacy) return sessions.handle(request, read.body, caller);
      if (!callers.has(keyOf(caller)) && callers.size >= maxCallers && !dropOldestUnused(gateway, callers)) {
        return refuseRequest(503, -32_000, 'there are too many clients; try again later');
      }
      const stateless = callerOf(gateway, callers, caller, now());
      const uris = listUris(read.body);
      subscribeAll(gateway, caller, stateless.clientKey, uris, AbortSignal.timeout(gateway.limits.requestMs));
      return answerOpen(stateless, () => answerMessage(gateway, stateless, request, read.body));
    },
    async close() {
      await sessions.close();
      await Promise.all(Array.from(callers.values(), ({ handler }) => handler.close()));
    },
  };
}

/** For Node's `http`. {@link CALLER_HEADER} names the caller; only the sidecar can send it to this socket. */
export function httpFrontListener(front: HttpFront): (request: IncomingMessage, response: ServerResponse) => void {
  const handler = toNodeHandler({
    fetch: (request) => {
      const caller = readCallerHeader(request.headers.get(CALLER_HEADER));
      return caller === null
        ? Promise.resolve(refuseRequest(403, -32_000, 'the request does not name its caller'))
        : front.fetch(request, caller);
    },
  });
  return (request, response) => void handler(INCOMING.parse(request), response);
}

/** Node's request. The SDK's type omits members that may be undefined. */
const INCOMING = z.custom<Parameters<ReturnType<typeof toNodeHandler>>[0]>();

/** The SDK gives each error of a handler the status 200. */
async function answerMessage(
  gateway: Gateway,
  { handler }: StatelessCaller,
  request: Request,
  body: unknown,
): Promise<Response> {
  const reply = await handler.fetch(request, { parsedBody: body });
  if (!gateway.tools.mismatched.has(request.headers)) return reply;
  return new Response(reply.body, { status: 400, headers: reply.headers });
}

/** The parsed body (undefined if there is none), or the answer to a request with an invalid body. */
async function bodyOf(request: Request, maxBytes: number): Promise<{ readonly body: unknown } | Response> {
  if (request.method !== 'POST') return { body: undefined };
  const read = await readRequestBody(request, maxBytes);
  if (read.tooLarge) return refuseRequest(413, -32_600, 'the request is too large');
  const cost = jsonCostProblem(read.text);
  if (cost !== null) return refuseRequest(413, -32_600, `the request ${cost}`);
  try {
    return { body: JSON.parse(read.text) as unknown };
  } catch {
    return refuseRequest(400, -32_700, 'the request is not JSON');
  }
}

function callerOf(
  gateway: Gateway,
  callers: Map<string, StatelessCaller>,
  caller: Caller,
  now: number,
): StatelessCaller {
  const key = keyOf(caller);
  const known = callers.get(key);
  if (known !== undefined) {
    known.usedAt = now;
    return known;
  }
  const made = statelessCaller(gateway, caller, now);
  callers.set(key, made);
  return made;
}

function statelessCaller(gateway: Gateway, caller: Caller, now: number): StatelessCaller {
  const handler = createMcpHandler(() => gatewayServer(gateway, caller, false).server, {
    legacy: 'reject',
    maxRequestBodySize: gateway.limits.maxMessageBytes,
  });
  const clientKey = newClientKey();
  const { notify } = handler;
  gateway.audience.add({
    key: clientKey,
    caller,
    logLevel: () => null,
    listChanged(kind) {
      if (kind === 'tools') notify.toolsChanged();
      else if (kind === 'prompts') notify.promptsChanged();
      else notify.resourcesChanged();
    },
    resourceUpdated: (uri) => notify.resourceUpdated(uri),
    log: () => undefined,
  });
  return { handler, clientKey, usedAt: now, open: 0 };
}

/** The caller is in use until the answer was read, which may be a stream. */
async function answerOpen(stateless: StatelessCaller, answer: () => Promise<Response>): Promise<Response> {
  stateless.open += 1;
  let isOver = false;
  const done = (): void => {
    if (isOver) return;
    isOver = true;
    stateless.open -= 1;
  };
  try {
    return withReadEnd(await answer(), done);
  } catch (error) {
    done();
    throw error;
  }
}

/** Ends the oldest caller without running requests and streams. False if there is none. */
function dropOldestUnused(gateway: Gateway, callers: Map<string, StatelessCaller>): boolean {
  const unused = [...callers].filter(([, { open }]) => open === 0);
  const [oldest] = unused.toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
  if (oldest === undefined) return false;
  const [key, { clientKey, handler }] = oldest;
  callers.delete(key);
  gateway.leave(clientKey);
  void handler.close();
  return true;
}
