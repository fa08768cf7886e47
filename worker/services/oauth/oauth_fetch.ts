import type { Outbound, OutboundReply, OutboundFailureReason } from '../../kernel/outbound.ts';
import { parseJsonBytes } from '../../../shared/model/json.ts';
import type { Failure } from '../../../shared/model/failure.ts';

/** Thrown by the OAuth library when a call has no reply. */
export class NoReply extends Error {
  readonly outbound: Failure<OutboundFailureReason>;

  constructor(outbound: Failure<OutboundFailureReason>) {
    super(outbound.message);
    this.outbound = outbound;
  }
}

interface FetchOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

type Fetch = (url: string, options: FetchOptions) => Promise<Response>;

/** `fetch` for requests to token endpoints: the replies follow RFC 6749. Throws {@link NoReply}. */
export function oauthFetch(outbound: Outbound, body: TokenRequestBody = 'form'): Fetch {
  return outboundFetch(outbound, tokenReply, body);
}

/** How the body of a token request is written: RFC 6749 says a form, but some programs' providers take JSON. */
type TokenRequestBody = 'form' | 'json';

/** `fetch` for the libraries of OAuth and OpenID Connect, through the outbound port. Throws {@link NoReply}. */
export function outboundFetch(
  outbound: Outbound,
  makeReply: (reply: OutboundReply) => Response = plainReply,
  written: TokenRequestBody = 'form',
): Fetch {
  return async (url, { method = 'GET', headers = {}, body }) => {
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const form = body instanceof URLSearchParams ? body : null;
    const isJson = form !== null && written === 'json';
    const text = isJson ? JSON.stringify(Object.fromEntries(form)) : (form?.toString() ?? null);
    const called = await outbound.call({
      method,
      url,
      headers: { ...lower, ...(isJson && { 'content-type': 'application/json' }), 'user-agent': 'svc' },
      body: text === null ? null : new TextEncoder().encode(text),
    });
    if (!called.ok) throw new NoReply(called.error);
    return makeReply(called.value);
  };
}

function plainReply({ status, contentType, body }: OutboundReply): Response {
  const hasBody = status !== 204 && status !== 304;
  return new Response(hasBody ? body : null, { status, headers: { 'content-type': contentType } });
}

/**
 * Normalises a reply to RFC 6749. Providers differ: some send errors with 200, omit the token type or use their own,
 * send null or empty members, or send an ID token, which is not used here.
 */
function tokenReply(plain: OutboundReply): Response {
  const { status, body } = plain;
  const reply = jsonObject(body);
  if (reply === null) return plainReply(plain);
  const { id_token: _, ...fields } = withErrorCode(parseMembers(reply));
  const type = typeof fields['token_type'] === 'string' ? fields['token_type'].toLowerCase() : '';
  const isOther = type !== 'dpop' && type !== 'mac';
  const tokens = fields['access_token'] === undefined || !isOther ? fields : { ...fields, token_type: 'bearer' };
  const isError = status === 200 && typeof fields['error'] === 'string';
  return Response.json(tokens, { status: isError ? 400 : status });
}

/** Some providers send an object with a code as the error. */
function withErrorCode(fields: Record<string, unknown>): Record<string, unknown> {
  const { error } = fields;
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? { ...fields, error: code } : fields;
}

const MOST_SECONDS = 10 * 365 * 24 * 3600;

function parseMembers(reply: Record<string, unknown>): Record<string, unknown> {
  const said = Object.entries(reply).filter(([, value]) => value !== null && value !== '');
  return Object.fromEntries(said.map(([name, value]) => [name, name === 'expires_in' ? toSeconds(value) : value]));
}

/** A number of seconds that gives a valid time. The library rejects what is not a number. */
function toSeconds(value: unknown): unknown {
  const isNumeric = typeof value === 'string' && /^-?\d+([.]\d+)?$/.test(value);
  const seconds = isNumeric ? Number(value) : value;
  return typeof seconds === 'number' ? Math.min(Math.max(0, seconds), MOST_SECONDS) : seconds;
}

function jsonObject(body: Uint8Array): Record<string, unknown> | null {
  // The library reports what is wrong with a reply that is not JSON.
  const value = parseJsonBytes(body);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
}
