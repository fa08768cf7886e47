import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  isSpecType,
  LOG_LEVEL_META_KEY,
  type LoggingLevel,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { declaresTasks } from '../tasks/task_messages.ts';
import type { CallRound } from '../routing/active_call.ts';
import type { Caller } from '../../machine/mcp_caller.ts';

/** A client of the gateway. */
export interface GatewayClient {
  /** One per connection; null if requests are independent (no connection). */
  readonly key: string | null;
  readonly caller: Caller;
  /** The lowest severity of messages that it wants; null for none. */
  logLevel(): LoggingLevel | null;
}

/** The parts of a client's request that all methods share. */
export interface ClientRequest {
  readonly client: GatewayClient;
  readonly round: CallRound;
  readonly capabilities: ClientCapabilities;
  /** The later generation, with the extension: the request's answer may be a task. */
  readonly hasTasks: boolean;
  /** Metadata of the request for the server. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** The lowest severity of messages that the request wants; only in the later generation. */
  readonly logLevel: LoggingLevel | null;
  /** The state that the client sends back to continue an earlier request. */
  readonly state: string | undefined;
  readonly inputResponses: Readonly<Record<string, unknown>> | undefined;
  /** What repeats arguments of a call; null if nothing does: not over HTTP, or in the earlier generation. */
  readonly headers: Headers | null;
}

const envelopeKeys = z.looseObject({
  [CLIENT_CAPABILITIES_META_KEY]: z.custom<ClientCapabilities>().optional(),
  [LOG_LEVEL_META_KEY]: z
    .custom<LoggingLevel>((level) => isSpecType.LoggingLevel(level))
    .optional()
    .catch(undefined),
});

export function clientRequest(client: GatewayClient, server: Server, ctx: ServerContext): ClientRequest {
  const { mcpReq } = ctx;
  const { _meta: given } = mcpReq;
  const { progressToken, ...meta } = given ?? {};
  const envelope = mcpReq.envelope === undefined ? {} : envelopeKeys.parse(mcpReq.envelope);
  const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities() ?? {};
  return {
    client,
    round: { notify: (notification) => mcpReq.notify(notification), progressToken, signal: mcpReq.signal },
    capabilities,
    hasTasks: mcpReq.envelope !== undefined && declaresTasks(capabilities),
    meta,
    logLevel: envelope[LOG_LEVEL_META_KEY] ?? null,
    state: mcpReq.requestState<string>(),
    inputResponses: mcpReq.inputResponses,
    headers: mcpReq.envelope === undefined ? null : (ctx.http?.req?.headers ?? null),
  };
}
