import { z } from 'zod';
import { TOKEN_REQUESTS } from '../model/connector.ts';
import { LOGIN_GRANTS, type LoginAccount, MAX_TOKEN_CHARACTERS } from '../model/new_login.ts';
import { httpsUrlText } from './connectors/connector_spec_fields.ts';
import { contentHash, id, line, time } from './primitives.ts';
import { vaultPath } from './secrets.ts';

/** A login that is not stored after this time is gone. */
export const PENDING_LOGIN_SECONDS = 1_800;

const program = z
  .string()
  .max(32)
  .regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/, 'must be the name of the program, such as claude');

const facts = {
  program,
  token_url: httpsUrlText,
  client_id: line(500).min(1),
  grants: z.array(z.enum(LOGIN_GRANTS)).min(1).max(2),
};

/** `POST /v1/pending-logins`: replaces an earlier one of the same user and program. */
export const pendingLoginInput = z
  .strictObject({
    ...facts,
    /** Where tokens that nobody keeps are revoked (RFC 7009), on the server of the token URL. Absent: nowhere. */
    revocation_url: httpsUrlText.optional(),
    /** How the program writes its requests for tokens. */
    token_request: z.enum(TOKEN_REQUESTS).optional(),
  })
  .refine(({ revocation_url: url, token_url: token }) => url === undefined || isSameOrigin(url, token), {
    error: 'must be on the server of token_url',
    path: ['revocation_url'],
  })
  .meta({ id: 'PendingLoginInput' });
function isSameOrigin(url: string, other: string): boolean {
  return URL.canParse(url) && URL.canParse(other) && new URL(url).origin === new URL(other).origin;
}

export type PendingLoginInput = z.output<typeof pendingLoginInput>;

/** Whose login it is, as the provider said in its reply; for a person. */
const loginAccount: z.ZodType<LoginAccount> = z.strictObject({
  who: z.string().max(320).nullable(),
  plan: z.string().max(100).nullable(),
  /** The login was granted the right to make lasting API keys, or the provider did not say what it granted. */
  may_make_keys: z.boolean(),
});

/** `open`: no tokens have arrived. `held`: they wait for the person; nothing uses or refreshes them. */
export const pendingLogin = z
  .object({
    id: id('plg'),
    ...facts,
    state: z.enum(['open', 'held']),
    /** Null while it is open. */
    account: loginAccount.nullable(),
    created_at: time,
    expires_at: time,
  })
  .meta({ id: 'PendingLogin' });
export type PendingLogin = z.output<typeof pendingLogin>;

/** `DELETE /v1/pending-logins`: the ids of those that were deleted. */
export const discardedLogins = z.object({ discarded: z.array(id('plg')) }).meta({ id: 'DiscardedLogins' });
export type DiscardedLogins = z.output<typeof discardedLogins>;

export const pendingLoginParams = z.strictObject({ id: id('plg') });

/**
 * `POST /v1/pending-logins/{id}/store`: a connector of the user's own gets the tokens, if it still has the spec with this hash, or
 * a secret gets the access token.
 */
export const storeLoginInput = z
  .union(
    [
      z.strictObject({ connector_id: id('con'), content_hash: contentHash }),
      z.strictObject({ path: vaultPath, description: line(500).optional() }),
    ],
    { error: 'must have a connector_id with the content_hash of its spec, or the path of a secret' },
  )
  .meta({ id: 'StoreLoginInput' });
export type StoreLoginInput = z.output<typeof storeLoginInput>;
/** The `vault://` reference of what was stored. `created`: nothing was stored there before. */
export const storeLoginReply = z
  .object({ ref: z.string(), created: z.boolean().optional() })
  .meta({ id: 'StoredLogin' });

export const PENDING_LOGIN_TYP = 'svc-pending-login+jws';
export const HELD_LOGIN_TYP = 'svc-held-login+jws';
/** The type of the JWE in which a sidecar sends tokens. */
export const LOGIN_TOKENS_TYP = 'svc-login-tokens+jwe';

/** The public key of one pending login. P-256, because every runtime has it. */
export const loginKey = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string().max(64),
  y: z.string().max(64),
});
export type LoginKey = z.output<typeof loginKey>;

/** The payload of the JWS (`PENDING_LOGIN_TYP`) of `GET /v1/sidecar/pending-logins/{id}`. */
export const pendingLoginPayload = z.object({
  sidecar_id: id('sdc'),
  /** The call's jti. */
  nonce: z.string(),
  login: z.object({ id: id('plg'), ...facts, key: loginKey, expires_at: time }),
});

/**
 * `POST /v1/sidecar/pending-logins/{id}`: a compact JWE (ECDH-ES, A256GCM) to the login's key. Its protected header names the
 * login and the sidecar; its plaintext is JSON {@link loginTokens}. Accepted once.
 */
export const heldLoginRequest = z.strictObject({ sealed: z.string().max(65_536) }).meta({ id: 'HeldLoginRequest' });

/** The payload of the JWS (`HELD_LOGIN_TYP`) that says that the tokens are stored. */
export const heldLoginPayload = z.object({ sidecar_id: id('sdc'), nonce: z.string(), login_id: id('plg') });

/** A token as RFC 6749 appendix A.12 writes it. */
const tokenText = z
  .string()
  .min(1)
  .max(MAX_TOKEN_CHARACTERS)
  .regex(/^[ -~]+$/);

export const loginTokens = z.strictObject({
  access_token: tokenText,
  refresh_token: tokenText.nullable(),
  /** Seconds. */
  expires_in: z.number().int().min(0).max(315_360_000).nullable(),
  account: loginAccount,
});
export type LoginTokens = z.output<typeof loginTokens>;
