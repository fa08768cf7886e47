import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import {
  type CreatedToken,
  PERSONAL_TOKEN_PREFIX,
  type Scope,
  SCOPES,
  type TokenInput,
  type TokenRecord,
} from '../../shared/wire/tokens.ts';
import type { Caller } from '../kernel/caller.ts';
import { type AuditDraft, commit } from '../kernel/commit.ts';
import { type PageQuery, readPageById } from '../kernel/cursors.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../kernel/service_context.ts';
import { takeAttempt, type Throttle } from '../sign_in/throttle.ts';
import {
  findPersonalToken,
  findPersonalTokenByHash,
  insertPersonalToken,
  listPersonalTokens,
  type PersonalTokenRow,
  revokePersonalToken,
  touchPersonalToken,
} from '../store/personal_tokens.ts';

const DAY_MS = 24 * 3600 * 1000;
/** Limits new tokens of one user. */
const NEW_TOKENS: Throttle = { kind: 'new tokens', most: 50, windowSeconds: 60 * 60 };

/**
 * Creates a personal token. Only this reply contains its text, because only its hash is stored. Refuses with
 * `too_many_attempts`, `limit_reached`.
 */
export async function createPersonalToken(
  context: ServiceContext,
  caller: Caller,
  input: TokenInput,
): Promise<Result<CreatedToken, ApiError>> {
  const allowed = await takeAttempt(context, NEW_TOKENS, caller.userId);
  if (!allowed.ok) return allowed;
  const token = PERSONAL_TOKEN_PREFIX + randomToken();
  const row: PersonalTokenRow = {
    id: freshId(context, 'tok'),
    userId: caller.userId,
    name: input.name,
    tokenHash: await sha256Base64Url(token),
    scopes: JSON.stringify(input.scopes),
    createdAt: nowText(context),
    expiresAt: new Date(context.clock.now() + input.expires_in_days * DAY_MS).toISOString(),
    lastUsedAt: null,
    revokedAt: null,
  };
  return commit(context, controlChain(caller), async () =>
    ok({
      statements: [insertPersonalToken(context.database, row)],
      events: [tokenEvent('control.token.created', caller, row)],
      adds: [{ kind: 'personal_tokens', holder: caller.userId }],
      value: { ...toRecord(row), token },
    }),
  );
}

/** The caller's tokens, oldest first, including revoked and expired ones. Refuses with `invalid_cursor`. */
export async function listPersonalTokenPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<TokenRecord>, ApiError>> {
  return readPageById(query, 'tok', {
    read: (from) => listPersonalTokens(context.database, { userId: caller.userId, ...from }),
    toItem: toRecord,
  });
}

/** Revokes a token permanently: its next call is refused. Refuses with `not_found`. */
export async function removePersonalToken(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findPersonalToken(context.database, id);
    if (row === null || row.userId !== caller.userId || row.revokedAt !== null) {
      return err(apiError('not_found', `there is no active token ${id}: list them with GET /v1/tokens`));
    }
    return ok({
      statements: revokePersonalToken(context.database, id, nowText(context)),
      events: [tokenEvent('control.token.revoked', caller, row)],
      value: null,
    });
  });
}

const USED_RESOLUTION_MS = 60_000;

/** The user and scopes of a token; null if it does not exist, was revoked or has expired. */
export async function openPersonalToken(
  context: ServiceContext,
  token: string,
): Promise<{ readonly id: string; readonly userId: string; readonly scopes: readonly Scope[] } | null> {
  const row = await findPersonalTokenByHash(context.database, await sha256Base64Url(token));
  const now = nowText(context);
  if (row === null || row.revokedAt !== null || row.expiresAt <= now) return null;
  if (row.lastUsedAt === null || Date.parse(now) - Date.parse(row.lastUsedAt) >= USED_RESOLUTION_MS) {
    context.defer('when a personal token was last used', () => touchPersonalToken(context.database, row.id, now));
  }
  return { id: row.id, userId: row.userId, scopes: scopesIn(row) };
}

/** Ignores scopes that only a later version knows. */
function scopesIn(row: PersonalTokenRow): Scope[] {
  const named = new Set(z.array(z.string()).parse(JSON.parse(row.scopes)));
  return SCOPES.filter((scope) => named.has(scope));
}

function toRecord(row: PersonalTokenRow): TokenRecord {
  return {
    id: row.id,
    name: row.name,
    scopes: scopesIn(row),
    created_at: row.createdAt,
    expires_at: row.expiresAt,
    last_used_at: row.lastUsedAt,
    revoked_at: row.revokedAt,
  };
}

function tokenEvent(type: AuditDraft['type'], caller: Caller, row: PersonalTokenRow): AuditDraft {
  return { type, actor: caller.userId, data: { 'svc.control.resource': row.id } };
}
