import type { IncomingMessage } from 'node:http';
import { bodyText, type Endpoint } from './endpoint.ts';
import { EventStreamReader, type StreamState } from './event_stream.ts';
import { fieldsOf, jsonOf, type Message, readMessage } from './message.ts';

const MAX_MESSAGE_CHARACTERS = 32 * 1024 * 1024;

/** The outcome of sending a message. */
export type ExchangeEnd =
  /** All answers to it were passed on. */
  | { readonly kind: 'done'; readonly stream: StreamState }
  | { readonly kind: 'refused'; readonly status: number; readonly problem: MessageRefusal }
  | { readonly kind: 'failed'; readonly message: string };

/** Why the sidecar refused a message: its error, or the response that it sent. */
interface MessageRefusal {
  readonly response: Extract<Message, { readonly kind: 'response' }> | null;
  readonly code: string;
  readonly message: string;
}

export interface ExchangePorts {
  readonly endpoint: Endpoint;
  /** Receives a message and the session named in its reply; resolves when the next one may come. */
  readonly onMessage: (message: Message, sessionId: string | null) => Promise<void>;
  /** Receives problems for the log. */
  readonly warn: (text: string) => void;
}

interface Outgoing {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly onSent?: () => void;
}

/** Posts a message and passes on every message of the reply, from JSON or a stream. */
export async function exchange(outgoing: Outgoing, ports: ExchangePorts): Promise<ExchangeEnd> {
  const { text: body, headers, signal, onSent } = outgoing;
  const all = { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const call = { method: 'POST', headers: all, body, ...(signal && { signal }), ...(onSent && { onSent }) } as const;
  try {
    const reply = await ports.endpoint.call(call);
    return await handleReply(reply, signal, ports);
  } catch (error) {
    return { kind: 'failed', message: reasonOf(error) };
  }
}

/** Opens the stream for the server's own messages and passes them on until it ends. */
export async function listen(
  { headers, signal }: Pick<Outgoing, 'headers' | 'signal'>,
  ports: ExchangePorts,
): Promise<ExchangeEnd> {
  const call = {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream' },
    ...(signal && { signal }),
  } as const;
  try {
    return await handleReply(await ports.endpoint.call(call), signal, ports);
  } catch (error) {
    return { kind: 'failed', message: reasonOf(error) };
  }
}

async function handleReply(
  reply: IncomingMessage,
  signal: AbortSignal | undefined,
  ports: ExchangePorts,
): Promise<ExchangeEnd> {
  const { statusCode: status = 0 } = reply;
  if (status >= 300) return { kind: 'refused', status, problem: await problemOf(reply, status) };
  const type = (headerOf(reply, 'content-type') ?? '').split(';')[0]?.trim().toLowerCase();
  if (type === 'text/event-stream') return { kind: 'done', stream: await readStream(reply, signal, ports) };
  const text = await bodyText(reply, MAX_MESSAGE_CHARACTERS);
  if (type === 'application/json' && text !== '') await handOn(reply, text, ports);
  return { kind: 'done', stream: { lastEventId: null, retryMs: null } };
}

/** A broken stream counts as ended: requests that wait for a response find that there was none. */
async function readStream(
  reply: IncomingMessage,
  signal: AbortSignal | undefined,
  ports: ExchangePorts,
): Promise<StreamState> {
  const reader = new EventStreamReader(MAX_MESSAGE_CHARACTERS);
  try {
    for await (const chunk of reply) {
      if (!(chunk instanceof Uint8Array)) continue;
      for (const { type, data } of reader.push(chunk)) if (type === 'message') await handOn(reply, data, ports);
    }
  } catch (error) {
    if (signal?.aborted !== true) ports.warn(`a stream from the sidecar broke off: ${reasonOf(error)}`);
  }
  return reader.state;
}

async function handOn(reply: IncomingMessage, text: string, { onMessage, warn }: ExchangePorts): Promise<void> {
  const message = readMessage(text);
  if (typeof message === 'number') warn('the sidecar sent an invalid message');
  else await onMessage(message, headerOf(reply, 'mcp-session-id'));
}

async function problemOf(reply: IncomingMessage, status: number): Promise<MessageRefusal> {
  const text = await bodyText(reply, MAX_MESSAGE_CHARACTERS);
  const message = readMessage(text);
  const error = fieldsOf(fieldsOf(jsonOf(text))['error']);
  return {
    response: typeof message !== 'number' && message.kind === 'response' ? message : null,
    code: typeof error['code'] === 'string' ? error['code'] : `http_${status}`,
    message: typeof error['message'] === 'string' ? error['message'] : `the sidecar answered ${status}`,
  };
}

function headerOf(reply: IncomingMessage, name: string): string | null {
  const value = reply.headers[name];
  return typeof value === 'string' ? value : null;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
