import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { createHttpClient, type HttpClient, type HttpReply } from '../../machine/http_call.ts';
import { parseJson } from '../../shared/model/json.ts';

/** The sidecar's address and the token for its local API. */
export interface LocalApiAddress {
  readonly origin: URL;
  readonly hostToken: string;
}

/** Why a call to the sidecar failed. */
export interface LocalApiFailure {
  /** The sidecar's error code; `sidecar_unreachable` if there was no answer. */
  readonly code: string;
  /** The problem and the fix. */
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

type LocalApiMethod = 'GET' | 'POST' | 'PUT' | 'DELETE';

interface LocalApiCall {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Uses a new connection. On a kept connection that turns out to be closed, a call is retried, and a run must not be repeated. */
  readonly isOnce?: true;
}

const TIMEOUT_MS = 10_000;
const MAX_REPLY_BYTES = 64 * 1024 * 1024;

const refusalBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).default({}),
  }),
});

/**
 * Calls the sidecar's local API as the host. The address is looked up for each call: the sidecar may have been restarted on
 * another port and with another token.
 */
export class LocalApi {
  readonly #locate: () => LocalApiAddress | null;
  #client: { readonly origin: string; readonly http: HttpClient } | null = null;

  constructor(locate: () => LocalApiAddress | null) {
    this.#locate = locate;
  }

  /** The reply, validated against its schema. */
  async call<T>(
    method: LocalApiMethod,
    target: string,
    schema: z.ZodType<T>,
    call: LocalApiCall = {},
  ): Promise<Result<T, LocalApiFailure>> {
    const reply = await this.send(method, target, call);
    return reply.ok ? readReply(schema, reply.value) : reply;
  }

  /** The raw reply, unless it is an error. */
  async send(
    method: LocalApiMethod,
    target: string,
    { body, headers, timeoutMs = TIMEOUT_MS, signal, isOnce }: LocalApiCall,
  ): Promise<Result<HttpReply, LocalApiFailure>> {
    const address = this.#locate();
    if (address === null) return err(unreachableFailure('it is not running'));
    const client = isOnce === true ? clientOf(address.origin) : this.#clientFor(address.origin);
    const call = {
      method,
      target,
      headers: { ...headers, authorization: `Bearer ${address.hostToken}`, 'content-type': 'application/json' },
      body: body === undefined ? '' : JSON.stringify(body),
      timeoutMs,
      ...(signal !== undefined && { signal }),
    };
    const reply = await client.call(call).finally(() => {
      if (isOnce === true) client.close();
    });
    if (!reply.ok) return err(unreachableFailure(reply.error.message));
    if (reply.value.status < 400) return reply;
    const refused = refusalBody.safeParse(parseJson(reply.value.body));
    return err(refused.success ? refused.data.error : unreachableFailure(`it answered ${reply.value.status}`));
  }

  #clientFor(origin: URL): HttpClient {
    if (this.#client?.origin === origin.origin) return this.#client.http;
    this.#client?.http.close();
    this.#client = { origin: origin.origin, http: clientOf(origin) };
    return this.#client.http;
  }
}

function clientOf(origin: URL): HttpClient {
  return createHttpClient({ baseUrl: origin, maxReplyBytes: MAX_REPLY_BYTES });
}

/** The JSON of a reply; null for an empty one. */
export function readReply<T>(schema: z.ZodType<T>, { body }: HttpReply): Result<T, LocalApiFailure> {
  const parsed = schema.safeParse(body === '' ? null : parseJson(body));
  return parsed.success
    ? ok(parsed.data)
    : err(unreachableFailure('it has another version; restart svc after an update'));
}

function unreachableFailure(why: string): LocalApiFailure {
  const message = `the sidecar did not answer: ${why}. See: svc status`;
  return { code: 'sidecar_unreachable', message, details: {} };
}
