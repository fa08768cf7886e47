import { z } from 'zod';
import { id, line, page, pageQuery, time } from './primitives.ts';

/**
 * The scopes of a personal token: `RESOURCE:read` lists and shows, `RESOURCE:write` changes. A token never has more rights
 * than its user. Tokens, sign-ins and members can only be managed by a signed-in person, never with a personal token.
 */
export const SCOPES = [
  'account:read',
  'secrets:read',
  'secrets:write',
  'host-bindings:read',
  'host-bindings:write',
  'connectors:read',
  'connectors:write',
  'connectors:run',
  'mcp-servers:read',
  'mcp-servers:write',
  'approvals:read',
  'approvals:decide',
  'audit-events:read',
  'sidecars:read',
  /** Enrols sidecars: a sidecar gets every credential that its user may inject. */
  'sidecars:write',
] as const;
export type Scope = (typeof SCOPES)[number];

/** The prefix of a personal token. */
export const PERSONAL_TOKEN_PREFIX = 'svc_pat_';

export const MAX_TOKEN_DAYS = 366;
const DEFAULT_TOKEN_DAYS = 90;

/** `POST /v1/tokens`. */
export const tokenInput = z
  .strictObject({
    name: line(100).trim().min(1, 'is empty: say what the token is for, such as ci'),
    scopes: z
      .array(z.enum(SCOPES))
      .min(1, 'is empty: give at least one scope')
      .max(SCOPES.length)
      .transform((scopes) => SCOPES.filter((scope) => scopes.includes(scope))),
    expires_in_days: z.number().int().min(1).max(MAX_TOKEN_DAYS).default(DEFAULT_TOKEN_DAYS),
  })
  .meta({ id: 'CreateToken' });
export type TokenInput = z.infer<typeof tokenInput>;

const tokenFields = {
  id: id('tok'),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  created_at: time,
  expires_at: time,
  /** To the minute; null before the first call. */
  last_used_at: time.nullable(),
};

const tokenRecord = z.object({ ...tokenFields, revoked_at: time.nullable() }).meta({ id: 'Token' });
export type TokenRecord = z.infer<typeof tokenRecord>;

/** 201: the only reply that shows the token. */
export const createdToken = z
  .object({ ...tokenFields, revoked_at: time.nullable(), token: z.string() })
  .meta({ id: 'CreatedToken' });
export type CreatedToken = z.infer<typeof createdToken>;

export const tokensQuery = z.strictObject({ ...pageQuery });
export const tokensPage = page(tokenRecord).meta({ id: 'TokensPage' });
export const tokenParams = z.strictObject({ id: id('tok') });

/** A JSON Web Key Set (RFC 7517) of Ed25519 keys (RFC 8037). */
export const keySet = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        kid: z.string(),
        alg: z.literal('EdDSA'),
        use: z.literal('sig'),
      }),
    ),
  })
  .meta({ id: 'KeySet' });
