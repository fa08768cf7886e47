import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { err, ok, type Result } from '../shared/model/result.ts';
import { errorCode } from '../shared/model/error_code.ts';
import { ProxyAgent, ProxyFailed } from './connection/proxy_agent.ts';
import { createTrustingContext } from './trusted_roots.ts';
import type { Failure } from '../shared/model/failure.ts';
import type { UpstreamProxy } from '../shared/net/upstream_proxy.ts';

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query to send. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface HttpReply {
  readonly status: number;
  /** The first value of a header; undefined if absent. */
  header(lowerName: string): string | undefined;
  readonly body: string;
}

export type HttpFailureReason = 'unreachable' | 'timeout' | 'aborted' | 'untrusted_certificate' | 'reply_too_large';

export interface HttpClient {
  call(call: HttpCall): Promise<Result<HttpReply, Failure<HttpFailureReason>>>;
  /** Closes the idle connections. */
  close(): void;
}

interface HttpClientOptions {
  readonly baseUrl: URL;
  /** PEM certificates to trust in addition to the runtime's and the system's. */
  readonly extraCa?: readonly string[];
  /** The proxy that calls over https go through, but for exempt hosts. */
  readonly proxy?: UpstreamProxy | null;
  readonly maxReplyBytes: number;
}

/** A keep-alive client for one origin. It follows no redirects, keeps no cookies and reads no proxy variables. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const secure = options.baseUrl.protocol === 'https:';
  const agent = secure ? httpsAgent(options) : new HttpAgent({ keepAlive: true });
  const send = secure ? httpsRequest : httpRequest;
  const callOnce = (call: HttpCall): Promise<Attempt> =>
    attempt(send(options.baseUrl, requestOptions(options.baseUrl, call, agent)), call, options.maxReplyBytes);
  return {
    call: async (call) => {
      const first = await callOnce(call);
      return first.staleConnection ? (await callOnce(call)).result : first.result;
    },
    close: () => agent.destroy(),
  };
}

function httpsAgent({ extraCa = [], proxy = null }: HttpClientOptions): HttpsAgent {
  const kept = { keepAlive: true, secureContext: createTrustingContext(extraCa) };
  return proxy === null ? new HttpsAgent(kept) : new ProxyAgent(proxy, kept);
}

function requestOptions(base: URL, call: HttpCall, agent: HttpAgent | HttpsAgent): RequestOptions {
  const body = call.method !== 'GET' ? { 'content-length': String(Buffer.byteLength(call.body)) } : {};
  return {
    agent,
    method: call.method,
    path: base.pathname.replace(/\/$/, '') + call.target,
    headers: { ...call.headers, ...body },
    ...(call.signal ? { signal: call.signal } : {}),
  };
}

interface Attempt {
  readonly result: Result<HttpReply, Failure<HttpFailureReason>>;
  /** The peer closed the kept connection before it answered: the call may be retried on a new one. */
  readonly staleConnection: boolean;
}

type Request = ReturnType<typeof httpRequest>;

function attempt(request: Request, call: HttpCall, maxReplyBytes: number): Promise<Attempt> {
  return new Promise((resolve) => {
    let failure: Failure<HttpFailureReason> | null = null;
    // A request that still waits for its connection through the proxy does not report its end by itself.
    const stop = (reason: HttpFailureReason, message: string): void => {
      failure ??= { reason, message };
      request.destroy();
      settle(err(failure));
    };
    const cancel = (): void => stop('aborted', 'the call was cancelled');
    const timer = setTimeout(() => stop('timeout', `no reply within ${call.timeoutMs} ms`), call.timeoutMs);
    const settle = (result: Result<HttpReply, Failure<HttpFailureReason>>, staleConnection = false): void => {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', cancel);
      resolve({ result, staleConnection });
    };
    call.signal?.addEventListener('abort', cancel, { once: true });
    request.on('error', (error) => {
      const stale = failure === null && request.reusedSocket && errorCode(error) === 'ECONNRESET';
      settle(err(failure ?? failureOf(error)), stale);
    });
    request.on('close', () => settle(err(failure ?? { reason: 'unreachable', message: 'connection closed' })));
    request.on('response', (response) => collect(response, maxReplyBytes, settle, stop));
    request.end(call.method === 'GET' ? undefined : call.body);
  });
}

function collect(
  response: IncomingMessage,
  maxReplyBytes: number,
  settle: (result: Result<HttpReply, Failure<HttpFailureReason>>) => void,
  stop: (reason: HttpFailureReason, message: string) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  response.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxReplyBytes) stop('reply_too_large', `the reply is larger than ${maxReplyBytes} bytes`);
    else chunks.push(chunk);
  });
  response.on('error', () => stop('unreachable', 'the connection was lost before the end of the reply'));
  response.on('end', () => {
    settle(
      ok({ status: response.statusCode ?? 0, header: headerOf(response), body: Buffer.concat(chunks).toString() }),
    );
  });
}

function headerOf(response: IncomingMessage): (lowerName: string) => string | undefined {
  return (lowerName) => {
    const value = response.headers[lowerName];
    return Array.isArray(value) ? value[0] : value;
  };
}

const CERTIFICATE_CODES = /^(CERT_|ERR_TLS_CERT|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/;

function failureOf(error: Error): Failure<HttpFailureReason> {
  const code = errorCode(error);
  if (error instanceof ProxyFailed) return { reason: 'unreachable', message: error.message };
  if (code === 'ABORT_ERR') return { reason: 'aborted', message: 'the call was cancelled' };
  if (CERTIFICATE_CODES.test(code)) {
    return { reason: 'untrusted_certificate', message: `its certificate is not trusted (${code})` };
  }
  return { reason: 'unreachable', message: code === '' ? 'the connection failed' : `the connection failed (${code})` };
}
