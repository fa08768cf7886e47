import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { createHttpClient, type HttpClient } from '../../machine/http_call.ts';
import { parseJson } from '../../shared/model/json.ts';

/** Where the daemon listens, and what opens its local API. */
export interface DaemonAddress {
  readonly origin: URL;
  readonly hostToken: string;
}

/** Why the daemon did not do what it was asked. */
export interface DaemonRefusal {
  /** The daemon's own code; `daemon_unreachable` when it gave none. */
  readonly code: string;
  /** The problem and the fix. */
  readonly message: string;
}

export interface DaemonCall {
  readonly body?: object;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const TIMEOUT_MS = 10_000;
const MAX_REPLY_BYTES = 64 * 1024 * 1024;

const refusalBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

/**
 * Calls of the daemon's local API as the host. Where it is, is looked up for each: it may have been started again, on another
 * port and with another token.
 */
export class DaemonCalls {
  readonly #locate: () => DaemonAddress | null;
  #client: { readonly origin: string; readonly http: HttpClient } | null = null;

  constructor(locate: () => DaemonAddress | null) {
    this.#locate = locate;
  }

  async call<T>(
    method: 'GET' | 'POST',
    target: string,
    schema: z.ZodType<T>,
    { body, timeoutMs = TIMEOUT_MS, signal }: DaemonCall = {},
  ): Promise<Result<T, DaemonRefusal>> {
    const address = this.#locate();
    if (address === null) return err(unreachable('it is not running'));
    const reply = await this.#clientFor(address.origin).call({
      method,
      target,
      headers: { authorization: `Bearer ${address.hostToken}`, 'content-type': 'application/json' },
      body: body === undefined ? '' : JSON.stringify(body),
      timeoutMs,
      ...(signal !== undefined && { signal }),
    });
    if (!reply.ok) return err(unreachable(reply.error.message));
    const json = reply.value.body === '' ? null : parseJson(reply.value.body);
    if (reply.value.status >= 400) {
      const refused = refusalBody.safeParse(json);
      return err(refused.success ? refused.data.error : unreachable(`it answered ${reply.value.status}`));
    }
    const parsed = schema.safeParse(json);
    return parsed.success ? ok(parsed.data) : err(unreachable('it is of another version; restart svc after an update'));
  }

  #clientFor(origin: URL): HttpClient {
    if (this.#client?.origin === origin.origin) return this.#client.http;
    this.#client?.http.close();
    this.#client = {
      origin: origin.origin,
      http: createHttpClient({ baseUrl: origin, maxReplyBytes: MAX_REPLY_BYTES }),
    };
    return this.#client.http;
  }
}

function unreachable(why: string): DaemonRefusal {
  return { code: 'daemon_unreachable', message: `the sidecar could not be asked: ${why}. See: svc status` };
}
