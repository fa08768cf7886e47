import { callsAsCommands } from './calls_as_commands.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { ReplySchema } from '../read_fields.ts';

/** A raw reply. */
export interface RawReply {
  readonly status: number;
  readonly text: string;
}

/** What of `fetch` a client uses. */
export type ApiCall = (url: URL, init: ApiCallInit) => Promise<StreamedReply>;

interface ApiCallInit {
  readonly method: string;
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

/** A reply whose body is read once, as a text or as it arrives. */
export interface StreamedReply {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  /** The revision that was read: the call is refused if the thing has changed since. Older control planes ignore it. */
  readonly ifMatch?: string | number | undefined;
  readonly timeoutMs?: number;
  /** Ends the call early. */
  readonly signal?: AbortSignal | undefined;
}

/** Calls one server as one caller. */
export interface HttpClient {
  readonly origin: string;
  /** Returns the reply with any status; throws `CliError` if there is none. */
  send(method: string, path: string, options?: CallOptions): Promise<RawReply>;
  /** Returns a streaming reply, whose body is read as it arrives. Throws `CliError` unless it is a success. */
  stream(
    path: string,
    options: CallOptions & { headers?: Record<string, string>; signal: AbortSignal },
  ): Promise<StreamedReply>;
  /** Returns the reply's validated JSON; throws `CliError` if it is an error or does not match the schema. */
  call<T>(method: string, path: string, schema: ReplySchema<T>, options?: CallOptions): Promise<T>;
  /** Expects a success without a body. */
  callEmpty(method: string, path: string, options?: CallOptions): Promise<RawReply>;
}

interface Server {
  readonly origin: string;
  /** The bearer token, or a function that supplies it before each call and a new one after a refusal; null for an unauthenticated call. */
  readonly token: string | ((refused: string | null) => Promise<string>) | null;
  /** `the control plane` or `the sidecar`. */
  readonly name: string;
  readonly fetch: ApiCall;
  /** The fix to suggest if it cannot be reached. */
  readonly startFix: string;
}

const TIMEOUT_MS = 30_000;

/** A client that sends the token only to this origin. Redirects are not followed. */
export function httpClient(server: Server): HttpClient {
  const send: HttpClient['send'] = async (method, path, options = {}) => {
    const late = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
    const signal = options.signal === undefined ? late : AbortSignal.any([late, options.signal]);
    const response = await request(server, method, path, options, { signal });
    return { status: response.status, text: await readText(server, response) };
  };
  const succeed: HttpClient['callEmpty'] = async (method, path, options) => {
    const reply = await send(method, path, options);
    if (reply.status < 200 || reply.status > 299) throw errorOfReply(server.name, reply);
    return reply;
  };
  return {
    origin: server.origin,
    send,
    callEmpty: succeed,
    call: async (method, path, schema, options) =>
      parseReply(server.name, schema, (await succeed(method, path, options)).text),
    stream: async (path, options) => {
      const response = await request(server, 'GET', path, options, options);
      if (response.ok) return response;
      throw errorOfReply(server.name, { status: response.status, text: await response.text() });
    },
  };
}

async function request(
  server: Server,
  method: string,
  path: string,
  options: CallOptions,
  init: { readonly signal: AbortSignal; readonly headers?: Record<string, string> },
): Promise<StreamedReply> {
  const url = new URL(server.origin + path);
  if (url.origin !== server.origin) throw new CliError(EXIT.usage, `the path ${path} is not on ${server.origin}`);
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const json = options.body === undefined ? undefined : JSON.stringify(options.body);
  const condition = options.ifMatch === undefined ? {} : { 'if-match': `"${options.ifMatch}"` };
  const sendAs = async (token: string | null): Promise<StreamedReply> => {
    const headers = { ...init.headers, ...condition, ...(token !== null && { authorization: `Bearer ${token}` }) };
    try {
      return await server.fetch(url, {
        method,
        redirect: 'manual',
        signal: init.signal,
        headers: json === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        ...(json !== undefined && { body: json }),
      });
    } catch (error) {
      throw unreachableError(server, error);
    }
  };
  if (typeof server.token !== 'function') return sendAs(server.token);
  const first = await server.token(null);
  const reply = await sendAs(first);
  if (reply.status !== 401) return reply;
  // A 401 has no effects, so the call is repeated with a new token: the signing key may have been rotated. If the sign-in has ended, renewing reports that.
  await readText(server, reply);
  return sendAs(await server.token(first));
}

async function readText(server: Server, response: StreamedReply): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw unreachableError(server, error);
  }
}

function unreachableError(server: Server, error: unknown): CliError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null;
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  const why = timedOut ? 'no answer in time' : (code ?? (cause instanceof Error ? cause.message : 'unknown failure'));
  return new CliError(EXIT.unreachable, `${server.name} at ${server.origin} cannot be reached (${why})`, [
    server.startFix,
  ]);
}

function parseReply<T>(name: string, schema: ReplySchema<T>, text: string): T {
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue === undefined ? '' : ` (${toPrintable(issue.path.join('.')) || 'body'}: ${issue.message})`;
  throw new CliError(EXIT.failed, `${name} answered in a format that this svc does not know${where}`, [
    'Their versions probably differ: `svc status` shows both.',
  ]);
}

/** Formats an error reply: its message, one line per invalid field, its code and request id. */
export function errorOfReply(name: string, reply: RawReply): CliError {
  const error = propertyOf(parseJson(reply.text), 'error');
  const message = propertyOf(error, 'message');
  if (typeof message !== 'string') {
    return new CliError(EXIT.failed, `${name} answered ${reply.status} without a reason`);
  }
  const code = String(propertyOf(error, 'code'));
  const fields = propertyOf(propertyOf(error, 'details'), 'fields');
  const lines = Array.isArray(fields) ? fields.filter((field) => !repeats(message, field)).map(fieldLine) : [];
  return new CliError(
    EXIT.failed,
    `${toPrintable(callsAsCommands(message))} (${reply.status} ${toPrintable(code)})`,
    lines,
    code,
  );
}

/** The message of a call with one invalid field is often that of the field. */
function repeats(message: string, problem: unknown): boolean {
  return message === `${String(propertyOf(problem, 'field'))} ${String(propertyOf(problem, 'message'))}`;
}

function fieldLine(problem: unknown): string {
  const field = propertyOf(problem, 'field');
  const message = propertyOf(problem, 'message');
  return toPrintable(`${typeof field === 'string' ? field : '?'}: ${typeof message === 'string' ? message : '?'}`);
}

function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
