import type { JWK } from 'jose';
import { z } from 'zod';
import { parseJsonBytes } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Outbound } from '../../kernel/outbound.ts';

const LIMITS = { maxReplyBytes: 256 * 1024, timeoutMs: 10_000 };
const MAX_KEYS = 100;

/** The part of a discovery document (OpenID Connect Discovery section 3) that is used. */
const discovery = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) });
const key = z.record(z.string(), z.unknown()).and(z.object({ kty: z.string() }));
const keySet = z.object({ keys: z.array(key).max(MAX_KEYS) });

/**
 * The keys that an issuer publishes now: through its discovery document, which must be its own. Redirects are not
 * followed, and what the outbound port refuses is not called. Refuses with `issuer_failed`.
 */
export async function readIssuerKeys(outbound: Outbound, issuer: string): Promise<Result<readonly JWK[], ApiError>> {
  const url = `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`;
  const document = await readDocument(outbound, { url, isStrangers: false }, discovery);
  if (!document.ok) return document;
  if (document.value.issuer !== issuer) return err(failed(issuer, 'its discovery document names another issuer'));
  const uri = document.value.jwks_uri;
  const isStrangers = new URL(uri).origin !== new URL(issuer).origin;
  const keys = await readDocument(outbound, { url: uri, isStrangers }, keySet);
  return keys.ok ? ok(keys.value.keys) : keys;
}

async function readDocument<T>(
  outbound: Outbound,
  { url, isStrangers }: { readonly url: string; readonly isStrangers: boolean },
  schema: z.ZodType<T>,
): Promise<Result<T, ApiError>> {
  const headers = { accept: 'application/json', 'user-agent': 'svc' };
  const called = await outbound.call({ method: 'GET', url, headers, body: null, limits: LIMITS, isStrangers });
  if (!called.ok) return err(failed(url, called.error.message));
  const { status, body } = called.value;
  if (status !== 200) return err(failed(url, `it answered ${status} where its keys are looked for`));
  const parsed = schema.safeParse(parseJsonBytes(body));
  return parsed.success ? ok(parsed.data) : err(failed(url, 'it answered something else than the document'));
}

function failed(url: string, why: string): ApiError {
  return apiError('issuer_failed', `the keys of the issuer cannot be read from ${new URL(url).host}: ${why}`);
}
