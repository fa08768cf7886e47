import type { Client, FetchLike, JsonSchemaValidator, jsonSchemaValidator } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { byteTextOf } from '../../../../shared/inject/byte_text.ts';
import { SEARCH_KEY_WORDS } from '../../../../shared/inject/scrub/block_search.ts';
import { maskText } from '../../../../shared/inject/scrub/mask_value.ts';
import { compileScrubPatterns, type ScrubPatterns } from '../../../../shared/inject/scrub/patterns.ts';
import { referencesOf, withReferences } from '../../../../shared/mcp/references.ts';
import { err, ok, type Result } from '../../../../shared/model/result.ts';
import type { Secret } from '../../../../shared/model/secret.ts';
import { toShownLine } from '../../../../shared/model/shown_text.ts';
import type { ApiError } from '../../../../shared/wire/errors.ts';
import { findReferredSecret } from '../../../store/secrets.ts';
import type { Outbound } from '../../../kernel/outbound.ts';
import type { ServiceContext } from '../../../kernel/service_context.ts';
import { ASK_COLLEAGUE } from '../../connectors/connector_access.ts';
import { accessToken } from '../../oauth/oauth_access_token.ts';
import { currentValue } from '../../sources/minted_value.ts';
import type { ServedServer } from './served_servers.ts';

/** A remote server that was connected to for one request. */
export interface OpenServer {
  readonly client: Client;
  /** The server's own credentials, to be searched for in what it says. */
  readonly patterns: ScrubPatterns;
  /** Ends its session after the reply. */
  close(): void;
}

/** How long a server may take to answer which revision it speaks; after that, an earlier one is assumed. */
const PROBE_MS = 10_000;

/**
 * Connects to a remote server with its credentials, for one request: nothing is kept between requests, so that any worker
 * can answer the next one. The error is a sentence for the person, without a credential.
 */
export async function openServer(
  context: ServiceContext,
  served: ServedServer,
  signal: AbortSignal,
): Promise<Result<OpenServer, string>> {
  const filled = await fillServer(context, served);
  if (!filled.ok) return served.isShared ? err(ASK_COLLEAGUE) : filled;
  const { url, headers, patterns, endsAtMs } = filled.value;
  const { Client: SdkClient, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const transport = new StreamableHTTPClientTransport(url, {
    fetch: fetchThrough(context, url.origin, endsAtMs),
    requestInit: { headers },
  });
  const client = new SdkClient(
    { name: 'svc', title: 'svc MCP gateway', version: VERSION },
    {
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: PROBE_MS } },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: UNCHECKED,
    },
  );
  // An unexpected message is the server's mistake and does not end the connection.
  Object.assign(client, { onerror: () => undefined });
  try {
    await client.connect(transport, { signal, timeout: context.limits.runTimeoutSeconds * 1000 });
  } catch (error) {
    return err(describeServerError(error, patterns));
  }
  const end = async () => {
    // A server without sessions has none to end, and one that does not answer is left alone.
    await transport.terminateSession().catch(() => undefined);
    await client.close().catch(() => undefined);
  };
  return ok({ client, patterns, close: () => context.defer('the end of a session at an MCP server', end) });
}

const VERSION = '1';

/** What a server or the SDK said about a failure, in one line without the server's credentials. */
export function describeServerError(error: unknown, patterns: ScrubPatterns): string {
  if (statusOf(error) === 401)
    return 'it refuses the credentials (401): sign in to it again on its page of the console';
  const message = error instanceof Error ? error.message : 'it failed';
  return toShownLine(maskText(message, patterns), MOST_CHARACTERS);
}

const MOST_CHARACTERS = 300;
const httpError = z.object({ data: z.object({ status: z.number() }) });

function statusOf(error: unknown): number | null {
  if (error instanceof Error && error.name === 'UnauthorizedError') return 401;
  return httpError.safeParse(error).data?.data.status ?? null;
}

interface FilledServer {
  readonly url: URL;
  readonly headers: Record<string, string>;
  readonly patterns: ScrubPatterns;
  /** When the first of its values or its access token ends; Infinity if none does. */
  readonly endsAtMs: number;
}

/** The server's URL and headers with its stored credentials, and its access token if it has people sign in. */
async function fillServer(
  context: ServiceContext,
  { row, server }: ServedServer,
): Promise<Result<FilledServer, string>> {
  const values = new Map<string, string>();
  const ends: (string | null)[] = [];
  for (const path of referencesOf(server)) {
    const secret = await findReferredSecret(context.database, { ownerId: row.ownerId, path });
    if (secret === null) return err('one of its credentials is not stored: store it on its page of the console');
    const current = await currentValue(context, secret);
    if (!current.ok) return err(current.error.message);
    values.set(path, current.value.secret.reveal());
    ends.push(current.value.expiresAt);
  }
  const filled = withReferences(server, values);
  if (!filled.ok) return err(filled.error);
  if (filled.value.url === null || !URL.canParse(filled.value.url)) return err('it has no URL');
  const bearer = await findBearer(context, server.id);
  if (!bearer.ok) return err(bearer.error.message);
  const token = bearer.value?.token.reveal() ?? null;
  ends.push(bearer.value?.expiresAt ?? null);
  const headers = toHeaders(filled.value.headers, token);
  if (headers === null) return err(INVALID_HEADER);
  const secrets = [...values.values(), ...(token === null ? [] : [token])];
  const key = crypto.getRandomValues(new Uint32Array(SEARCH_KEY_WORDS));
  const patterns = compileScrubPatterns(secrets, key);
  const endsAtMs = Math.min(...ends.map((end) => (end === null ? Number.POSITIVE_INFINITY : Date.parse(end))));
  return ok({ url: new URL(filled.value.url), headers: Object.fromEntries(headers), patterns, endsAtMs });
}

const INVALID_HEADER =
  'one of its headers has a character that a header cannot have, such as a line break: store its credential again on its page of the console';
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The headers as byte text; null if one cannot be sent. The runtime refuses it with an error that quotes the credential. */
function toHeaders(fields: Readonly<Record<string, string>>, token: string | null): Headers | null {
  const all = Object.entries(fields);
  if (token !== null) all.push(['authorization', `Bearer ${token}`]);
  const headers = new Headers();
  for (const [name, text] of all) {
    const value = byteTextOf(text).replaceAll(/^[\t\r\n ]+|[\t\r\n ]+$/g, '');
    if (!HEADER_VALUE.test(value)) return null;
    headers.set(name, value);
  }
  return headers;
}

/** Null for a server that nobody has signed in to. */
async function findBearer(
  context: ServiceContext,
  serverId: string,
): Promise<Result<{ readonly token: Secret; readonly expiresAt: string | null } | null, ApiError>> {
  const access = await accessToken(context, serverId);
  if (access.ok) return access;
  return access.error.code === 'binding_required' ? ok(null) : access;
}

/** Results are validated by the client. Validating them here would let a server make us compile its schema. */
const UNCHECKED: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: z.custom<T>().parse(input), errorMessage: undefined }),
};

/**
 * The SDK's `fetch` through the outbound port: only to the server's own origin, without redirects, with limits, and if
 * hosted to no private address. Replies arrive as a whole. A stream of the server's own messages is not opened. Nothing is sent once
 * one of its credentials has ended: a slow server may be asked several times.
 */
function fetchThrough(
  context: Pick<ServiceContext, 'outbound' | 'limits' | 'clock'>,
  origin: string,
  endsAtMs: number,
): FetchLike {
  return async (target, init = {}) => {
    const url = new URL(target);
    if (url.origin !== origin) throw new TypeError(`${url.origin} is not the origin of this server`);
    if ((init.method ?? 'GET') === 'GET') return new Response(null, { status: 405 });
    init.signal?.throwIfAborted();
    if (context.clock.now() >= endsAtMs) throw new Error('a credential of it ended before the answer: call it again');
    return callServer(context.outbound, url, init, {
      maxReplyBytes: context.limits.maxRunReplyBytes,
      timeoutMs: context.limits.runTimeoutSeconds * 1000,
    });
  };
}

async function callServer(
  outbound: Outbound,
  url: URL,
  init: RequestInit,
  limits: { readonly maxReplyBytes: number; readonly timeoutMs: number },
): Promise<Response> {
  const body = typeof init.body === 'string' ? new TextEncoder().encode(init.body) : null;
  const called = await outbound.call({
    method: init.method ?? 'POST',
    url: url.href,
    headers: { ...Object.fromEntries(new Headers(init.headers)), 'user-agent': 'svc' },
    body,
    limits,
  });
  if (!called.ok) throw new TypeError(called.error.message);
  const { status, contentType, body: bytes, mcpSessionId, wwwAuthenticate } = called.value;
  if (status < 200 || status > 599) throw new TypeError(`the reply has the status ${status}`);
  const headers = new Headers({ 'content-type': contentType });
  if (mcpSessionId !== undefined) headers.set('mcp-session-id', mcpSessionId);
  if (wwwAuthenticate !== undefined) headers.set('www-authenticate', wwwAuthenticate);
  const isEmpty = [204, 205, 304].includes(status);
  return new Response(isEmpty ? null : bytes, { status, headers });
}
