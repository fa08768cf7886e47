import type { z } from 'zod';
import { CliError, EXIT } from '../exit_codes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { parseJson } from '../../shared/model/json.ts';

/** A reply as it came: its status, its text and the headers that a command reads. */
export interface RawReply {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly timeoutMs?: number;
}

/** Calls one server as one caller. */
export interface HttpClient {
  readonly origin: string;
  /** The reply, whatever its status; throws `CliError` when there is none. */
  send(method: string, path: string, options?: CallOptions): Promise<RawReply>;
  /** A reply that goes on: its body is read as it comes. Throws `CliError` unless it is a success. */
  stream(
    path: string,
    options: CallOptions & { headers?: Record<string, string>; signal: AbortSignal },
  ): Promise<Response>;
  /** The reply's JSON, checked; throws `CliError` when it is an error or not of that form. */
  call<T>(method: string, path: string, schema: z.ZodType<T>, options?: CallOptions): Promise<T>;
  /** A success without a body. */
  callEmpty(method: string, path: string, options?: CallOptions): Promise<RawReply>;
}

interface Server {
  readonly origin: string;
  /**
   * The bearer token, or where it comes from before each call, which is asked for another one when a call was refused with
   * it; null for a call as nobody.
   */
  readonly token: string | ((refused: string | null) => Promise<string>) | null;
  /** `the control plane` or `the sidecar`. */
  readonly name: string;
  readonly fetch: typeof fetch;
  /** What to try when it cannot be reached. */
  readonly startFix: string;
}

const TIMEOUT_MS = 30_000;

/** A client that sends the token to this origin only: a redirect is not followed. */
export function httpClient(server: Server): HttpClient {
  const send: HttpClient['send'] = async (method, path, options = {}) => {
    const signal = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
    const response = await request(server, method, path, options, { signal });
    return { status: response.status, text: await readText(server, response), headers: response.headers };
  };
  const succeed: HttpClient['callEmpty'] = async (method, path, options) => {
    const reply = await send(method, path, options);
    if (reply.status < 200 || reply.status > 299) throw refusedBy(server.name, reply);
    return reply;
  };
  return {
    origin: server.origin,
    send,
    callEmpty: succeed,
    call: async (method, path, schema, options) =>
      checked(server.name, schema, (await succeed(method, path, options)).text),
    stream: async (path, options) => {
      const response = await request(server, 'GET', path, options, options);
      if (response.ok) return response;
      throw refusedBy(server.name, { status: response.status, text: await response.text(), headers: response.headers });
    },
  };
}

async function request(
  server: Server,
  method: string,
  path: string,
  options: CallOptions,
  init: { readonly signal: AbortSignal; readonly headers?: Record<string, string> },
): Promise<Response> {
  const url = new URL(server.origin + path);
  if (url.origin !== server.origin) throw new CliError(EXIT.usage, `the path ${path} leads away from ${server.origin}`);
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const json = options.body === undefined ? undefined : JSON.stringify(options.body);
  const sendAs = async (token: string | null): Promise<Response> => {
    const headers = { ...init.headers, ...(token !== null && { authorization: `Bearer ${token}` }) };
    try {
      return await server.fetch(url, {
        method,
        redirect: 'manual',
        signal: init.signal,
        headers: json === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        ...(json !== undefined && { body: json }),
      });
    } catch (error) {
      throw unreachable(server, error);
    }
  };
  if (typeof server.token !== 'function') return sendAs(server.token);
  const first = await server.token(null);
  const reply = await sendAs(first);
  if (reply.status !== 401) return reply;
  // It did nothing: the token may be of a key that was replaced at once, or of a sign-in that is over, which is said then.
  await reply.body?.cancel();
  return sendAs(await server.token(first));
}

async function readText(server: Server, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw unreachable(server, error);
  }
}

function unreachable(server: Server, error: unknown): CliError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null;
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  const why = timedOut ? 'no answer in time' : (code ?? (cause instanceof Error ? cause.message : 'unknown failure'));
  return new CliError(EXIT.unreachable, `${server.name} at ${server.origin} cannot be reached (${why})`, [
    server.startFix,
  ]);
}

function checked<T>(name: string, schema: z.ZodType<T>, text: string): T {
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue === undefined ? '' : ` (${issue.path.join('.') || 'body'}: ${issue.message})`;
  throw new CliError(EXIT.failed, `${name} answered in a form this svc does not know${where}`, [
    'The two are probably of different versions: `svc status` shows both.',
  ]);
}

/** The error of a reply, in words: its message, one line for each field that is wrong, its code and request id. */
export function refusedBy(name: string, reply: RawReply): CliError {
  const error = property(parseJson(reply.text), 'error');
  const message = property(error, 'message');
  if (typeof message !== 'string') {
    return new CliError(EXIT.failed, `${name} answered ${reply.status} without saying why`);
  }
  const code = String(property(error, 'code'));
  const fields = property(property(error, 'details'), 'fields');
  const lines = Array.isArray(fields) ? fields.map((field) => fieldLine(field)) : [];
  return new CliError(EXIT.failed, `${toPrintable(message)} (${reply.status} ${toPrintable(code)})`, lines, code);
}

function fieldLine(problem: unknown): string {
  const field = property(problem, 'field');
  const message = property(problem, 'message');
  return toPrintable(`${typeof field === 'string' ? field : '?'}: ${typeof message === 'string' ? message : '?'}`);
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
