import { randomUUID } from 'node:crypto';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import type { Caller } from '../../machine/mcp_caller.ts';
import type { Gateway } from '../gateway.ts';
import { gatewayServer, type ServedClient } from '../gateway_server.ts';

interface Session {
  readonly id: string;
  readonly callerKey: string;
  readonly served: ServedClient;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  usedAt: number;
  /** Requests that are being answered. */
  open: number;
}

const SWEEP_MS = 60_000;
/** A session used within this time is not ended to make room for another. */
const FRESH_MS = 60_000;

/**
 * The sessions of clients of the earlier generation (`Mcp-Session-Id`). A session belongs to the caller that began it; for any
 * other caller it does not exist.
 */
export class HttpSessions {
  readonly #gateway: Gateway;
  readonly #now: () => number;
  readonly #sessions = new Map<string, Session>();
  readonly #timer: NodeJS.Timeout;

  constructor(gateway: Gateway, now: () => number) {
    this.#gateway = gateway;
    this.#now = now;
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#timer.unref();
  }

  async handle(request: Request, body: unknown, caller: Caller): Promise<Response> {
    const callerKey = keyOf(caller);
    const id = request.headers.get('mcp-session-id');
    if (id !== null) {
      const session = this.#sessions.get(id);
      if (session === undefined || session.callerKey !== callerKey) return noSessionReply();
      return this.#answer(session, request, body);
    }
    if (!isInitialize(body))
      return refuseRequest(400, -32_000, 'the request has no Mcp-Session-Id, and does not begin a session');
    if (!this.#makeRoom(callerKey))
      return refuseRequest(503, -32_000, 'there are too many sessions; end one, or try again later');
    return this.#begin(request, body, caller, callerKey);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(Array.from(this.#sessions.values(), (session) => this.#end(session)));
  }

  async #begin(request: Request, body: unknown, caller: Caller, callerKey: string): Promise<Response> {
    const { limits } = this.#gateway;
    const served = gatewayServer(this.#gateway, caller, true);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: limits.maxMessageBytes,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { id, callerKey, served, transport, usedAt: this.#now(), open: 0 });
      },
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    await served.server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: body });
    // If the request began no session, nothing is kept.
    if (transport.sessionId === undefined) await served.server.close();
    return response;
  }

  async #answer(session: Session, request: Request, body: unknown): Promise<Response> {
    session.usedAt = this.#now();
    session.open += 1;
    let isOver = false;
    const done = (): void => {
      if (isOver) return;
      isOver = true;
      session.open -= 1;
      session.usedAt = this.#now();
    };
    try {
      const response = await session.transport.handleRequest(request, body === undefined ? {} : { parsedBody: body });
      return withReadEnd(response, done);
    } catch (error) {
      done();
      throw error;
    }
  }

  /**
   * At a limit, ends the oldest session that is not in use. At the caller's limit it is one of the caller's; at the total limit
   * it is one of the caller with the most sessions.
   */
  #makeRoom(callerKey: string): boolean {
    const { maxSessions, maxSessionsOfCaller } = this.#gateway.limits;
    const byCaller = Map.groupBy(this.#sessions.values(), (session) => session.callerKey);
    const own = byCaller.get(callerKey) ?? [];
    const isOwnFull = own.length >= maxSessionsOfCaller;
    if (!isOwnFull && this.#sessions.size < maxSessions) return true;
    const others = isOwnFull ? [] : [...byCaller.values()].toSorted((a, b) => b.length - a.length);
    const oldest = [own, ...others]
      .map((sessions) => this.#findOldestUnused(sessions))
      .find((found) => found !== undefined);
    if (oldest === undefined) return false;
    void this.#end(oldest);
    return true;
  }

  #findOldestUnused(sessions: readonly Session[]): Session | undefined {
    const unused = sessions.filter(({ open, usedAt }) => open === 0 && this.#now() - usedAt > FRESH_MS);
    return unused.toSorted((a, b) => a.usedAt - b.usedAt)[0];
  }

  #sweep(): void {
    const { sessionIdleMs } = this.#gateway.limits;
    for (const session of this.#sessions.values()) {
      if (session.open === 0 && this.#now() - session.usedAt > sessionIdleMs) void this.#end(session);
    }
  }

  async #end(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    await session.served.server.close().catch(() => undefined);
  }
}

/** The response. Calls `done` when it was read completely or its reader is gone, since a stream may be long. */
export function withReadEnd(response: Response, done: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) {
    done();
    return response;
  }
  const reader = body.getReader();
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await reader.read();
        if (!next.done) return controller.enqueue(next.value);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      done();
    },
    async cancel(reason) {
      done();
      await reader.cancel(reason);
    },
  });
  return new Response(watched, { status, statusText, headers });
}

/** A key that identifies a caller. */
export function keyOf({ sessionId, servers }: Caller): string {
  return JSON.stringify([sessionId, servers]);
}

function isInitialize(body: unknown): boolean {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  return typeof first === 'object' && first !== null && 'method' in first && first.method === 'initialize';
}

function noSessionReply(): Response {
  return refuseRequest(404, -32_001, 'Session not found');
}

/** An error answer to a request that did not reach the SDK. */
export function refuseRequest(
  status: number,
  code: number,
  message: string,
  id: string | number | null = null,
): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status });
}
