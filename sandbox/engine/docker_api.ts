import { type IncomingMessage, request } from 'node:http';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { RuntimeFailure } from './container_runtime.ts';
import { checkDockerEndpoint, programFailure, refusedFailure } from './docker_endpoint.ts';
import { unixSocketPath } from './engine_socket.ts';

/** A reply of the engine. `body` is its JSON; undefined if it has none. */
interface ApiReply {
  readonly status: number;
  readonly body: unknown;
}

interface ApiCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With its query. Without a version in front: the engine then speaks its newest one. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: object;
  /** Null: no time limit. */
  readonly timeoutMs?: number | null;
}

/** Calls the API of one engine. A refusal is a reply, too. */
export type DockerApi = (call: ApiCall) => Promise<Result<ApiReply, RuntimeFailure>>;

const TIMEOUT_MS = 60_000;
const MAX_REPLY_BYTES = 8 * 1024 * 1024;

/**
 * The Docker Engine API at the socket of an endpoint (docs/decisions/0176). A question that takes the program `docker` 80 ms of
 * CPU takes less than two here. Only calls without streams; `docker_streams.ts` has the one that takes its connection over.
 */
export function dockerApi(endpoint: string): DockerApi {
  const socketPath = unixSocketPath(endpoint);
  return async (call) => {
    if (socketPath === null) return err(await whyNoReply(endpoint, 'no Unix socket'));
    try {
      return ok(await send(socketPath, call));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return err(error.name === 'AbortError' ? tookTooLong(error) : await whyNoReply(endpoint, error.message));
    }
  };
}

function tookTooLong({ message }: Error): RuntimeFailure {
  return programFailure('docker', { reason: 'timeout', message });
}

/** What is wrong with the endpoint; `said` if nothing is by now. */
async function whyNoReply(endpoint: string, said: string): Promise<RuntimeFailure> {
  const state = await checkDockerEndpoint(endpoint);
  return state.ok ? refusedFailure(said) : state.error;
}

function send(socketPath: string, { method, path, body, timeoutMs = TIMEOUT_MS }: ApiCall): Promise<ApiReply> {
  return new Promise((resolve, reject) => {
    const signal = timeoutMs === null ? {} : { signal: AbortSignal.timeout(timeoutMs) };
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const call = request({ socketPath, method, path, headers, agent: false, ...signal }, (reply) => {
      receive(reply).then(resolve, reject);
    });
    call.on('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function receive(reply: IncomingMessage): Promise<ApiReply> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_REPLY_BYTES) throw new Error('its reply is too long');
    chunks.push(chunk);
  }
  return { status: reply.statusCode ?? 0, body: parseJson(Buffer.concat(chunks).toString('utf8')) };
}

const errorReply = z.object({ message: z.string() });

/** The parsed body of a success; a refusal in the engine's words for any other reply. */
export function readReply<T>(
  reply: Result<ApiReply, RuntimeFailure>,
  parse: (body: unknown) => T,
): Result<T, RuntimeFailure> {
  if (!reply.ok) return reply;
  const { status, body } = reply.value;
  if (status < 200 || status > 299) {
    return err(refusedFailure(errorReply.safeParse(body).data?.message ?? `status ${status}`));
  }
  try {
    return ok(parse(body));
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    return err(refusedFailure(`its reply is not Docker's (${z.prettifyError(error)})`));
  }
}
