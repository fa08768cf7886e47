import {
  Client,
  type ClientCapabilities,
  type ElicitationCompleteNotificationParams,
  type JsonSchemaValidator,
  type jsonSchemaValidator,
  type LoggingMessageNotificationParams,
  SdkError,
  SdkErrorCode,
  type Transport,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { SecretMask } from '../servers/secret_mask.ts';
import type { ServerProblem } from '../servers/server_problem.ts';

export type ListKind = 'tools' | 'prompts' | 'resources';

/** What a server asks its client for (specification revision 2025-11-25, client features). */
export interface InputCall {
  readonly method: 'sampling/createMessage' | 'elicitation/create' | 'roots/list';
  readonly params: Readonly<Record<string, unknown>>;
}

/** What a downstream server says by itself. */
export interface DownstreamEvents {
  /** Resolves with the client's answer, or rejects when no client can be asked. */
  input(call: InputCall, gone: AbortSignal): Promise<Record<string, unknown>>;
  listChanged(kind: ListKind): void;
  resourceUpdated(uri: string): void;
  log(message: LoggingMessageNotificationParams): void;
  elicitationComplete(params: ElicitationCompleteNotificationParams): void;
}

/** A connected downstream server. */
export interface Downstream {
  readonly client: Client;
  readonly mask: SecretMask;
  /** Resolves when the connection has ended, with why. */
  readonly closed: Promise<ServerProblem>;
  close(): Promise<void>;
}

/**
 * What the gateway tells servers that its clients can do. A server is told before it is known who will call it; what the
 * calling client cannot do is refused when it is asked for. Changes of roots are not announced: they would lead servers to
 * ask for roots outside of a call, and roots of a client replace the directories that some were started with.
 */
export const CLIENT_CAPABILITIES: ClientCapabilities = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: {},
};

/** What a server returns is validated by the client that asked for it; here it would be a way to make us compile its schema. */
const UNCHECKED: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({
      valid: true,
      data: z.custom<T>().parse(input),
      errorMessage: undefined,
    }),
};

export interface ConnectOptions {
  readonly transport: Transport;
  /** The server is known to speak an earlier revision, so it is not asked. */
  readonly isLegacy: boolean;
  readonly events: DownstreamEvents;
  readonly version: string;
  readonly limits: Pick<GatewayLimits, 'probeMs' | 'startMs' | 'maxListPages'>;
  readonly signal: AbortSignal;
}

/** Shakes hands with a server of either generation. Rejects as the SDK does; the transport is closed then. */
export async function connectClient(options: ConnectOptions): Promise<Client> {
  const { transport, limits, events, signal } = options;
  const client = new Client(
    { name: 'svc', title: 'svc MCP gateway', version: options.version },
    {
      capabilities: CLIENT_CAPABILITIES,
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: limits.probeMs } },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: UNCHECKED,
      listMaxPages: limits.maxListPages,
      listChanged: {
        tools: { autoRefresh: false, onChanged: () => events.listChanged('tools') },
        prompts: { autoRefresh: false, onChanged: () => events.listChanged('prompts') },
        resources: { autoRefresh: false, onChanged: () => events.listChanged('resources') },
      },
    },
  );
  listenTo(client, events);
  await client.connect(transport, {
    timeout: limits.startMs,
    signal,
    ...(options.isLegacy ? { prior: { kind: 'legacy' } as const } : {}),
  });
  return client;
}

function listenTo(client: Client, events: DownstreamEvents): void {
  for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list'] as const) {
    client.setRequestHandler(method, async (request, ctx) => {
      const answer = await events.input({ method, params: { ...request.params } }, ctx.mcpReq.signal);
      // What the client of the call answered; the SDK checks it against the schema of the method.
      return z.custom<never>().parse(answer);
    });
  }
  client.setNotificationHandler('notifications/message', ({ params }) => events.log(params));
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => events.resourceUpdated(params.uri));
  client.setNotificationHandler('notifications/elicitation/complete', ({ params }) =>
    events.elicitationComplete(params),
  );
  // What a server sends out of turn is its own mistake; it is not ours to end for it.
  Object.assign(client, { onerror: () => undefined });
}

/** True when the connection broke while the server was asked which revision it speaks: servers that end then are older ones. */
export function endedAtProbe(error: unknown): boolean {
  return SdkError.isInstance(error) && error.code === SdkErrorCode.EraNegotiationFailed;
}
