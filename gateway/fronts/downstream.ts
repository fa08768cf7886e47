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
import { receiveTasks } from '../tasks/receive_tasks.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { SecretMask } from '../servers/secret_mask.ts';
import type { ValueEnds } from '../servers/value_ends.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';

export type ListKind = 'tools' | 'prompts' | 'resources';

/** Requests that a server may send to its client (specification revision 2025-11-25, client features). */
export interface InputCall {
  readonly method: 'sampling/createMessage' | 'elicitation/create' | 'roots/list';
  readonly params: Readonly<Record<string, unknown>>;
}

/** Messages that a downstream server sends on its own. */
export interface DownstreamEvents {
  /** Resolves with the client's answer; rejects if no client can be asked. */
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
  /** The server did not say in time which revision it speaks: an earlier one is assumed. */
  readonly isEraGuessed?: boolean;
  /** Of the values that it was started with. */
  readonly ends: Pick<ValueEnds, 'hasEnded' | 'isRenewalDue' | 'renew'>;
  /** Resolves with the reason when the connection ends. */
  readonly closed: Promise<Failure<ServerFailureReason>>;
  close(): Promise<void>;
}

/**
 * The client capabilities that the gateway declares to servers. It declares them before it knows which client will call; a
 * request that the calling client does not support is refused. Changes of roots are not declared: servers would ask for roots
 * outside of a call, and a client's roots replace the directories that some servers were started with.
 */
const CLIENT_CAPABILITIES: ClientCapabilities = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: {},
};

/** Results are validated by the client. Validating them here would let a server make us compile its schema. */
const UNCHECKED: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({
      valid: true,
      data: z.custom<T>().parse(input),
      errorMessage: undefined,
    }),
};

interface ConnectOptions {
  readonly transport: Transport;
  /** The server is known to speak an earlier revision, so the newer one is not tried. */
  readonly isLegacy: boolean;
  readonly events: DownstreamEvents;
  readonly version: string;
  /** How long it may take to answer which revision it speaks. */
  readonly probeMs: number;
  readonly limits: Pick<GatewayLimits, 'startMs' | 'maxListPages'>;
  readonly signal: AbortSignal;
}

/** Performs the handshake with a server of either generation. On failure the transport is closed and the SDK's error is thrown. */
export async function connectClient(options: ConnectOptions): Promise<Client> {
  const { transport, probeMs, limits, events, signal } = options;
  const client = new Client(
    { name: 'svc', title: 'svc MCP gateway', version: options.version },
    {
      capabilities: CLIENT_CAPABILITIES,
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: probeMs } },
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
  // The SDK does not heed the signal while it waits for the revision. It ends the wait when the transport closes.
  const close = (): void => void transport.close().catch(() => undefined);
  signal.throwIfAborted();
  signal.addEventListener('abort', close);
  try {
    await client.connect(transport, {
      timeout: limits.startMs,
      signal,
      ...(options.isLegacy ? { prior: { kind: 'legacy' } as const } : {}),
    });
  } finally {
    signal.removeEventListener('abort', close);
  }
  signal.throwIfAborted();
  if (client.getProtocolEra() === 'modern') receiveTasks(transport);
  return client;
}

function listenTo(client: Client, events: DownstreamEvents): void {
  for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list'] as const) {
    client.setRequestHandler(method, async (request, ctx) => {
      const answer = await events.input({ method, params: { ...request.params } }, ctx.mcpReq.signal);
      // The client's answer; the SDK validates it against the method's schema.
      return z.custom<never>().parse(answer);
    });
  }
  client.setNotificationHandler('notifications/message', ({ params }) => events.log(params));
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => events.resourceUpdated(params.uri));
  client.setNotificationHandler('notifications/elicitation/complete', ({ params }) =>
    events.elicitationComplete(params),
  );
  // An unexpected message is the server's mistake and does not end the connection.
  Object.assign(client, { onerror: () => undefined });
}

/** True if the connection broke while the revision was negotiated: a server that ends then speaks an earlier revision. */
export function hasEndedAtProbe(error: unknown): boolean {
  return SdkError.isInstance(error) && error.code === SdkErrorCode.EraNegotiationFailed;
}
