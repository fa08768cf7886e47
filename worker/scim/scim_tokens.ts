import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import {
  type CreatedScimToken,
  MAX_SCIM_TOKENS,
  SCIM_PATH,
  SCIM_TOKEN_PREFIX,
  type ScimTokenInput,
  type ScimTokenRecord,
} from '../../shared/wire/scim_tokens.ts';
import { type Caller, mayActAs } from '../kernel/caller.ts';
import { type AuditDraft, commit } from '../kernel/commit.ts';
import { type PageQuery, readPageById } from '../kernel/cursors.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../kernel/service_context.ts';
import {
  countLiveScimTokens,
  findScimToken,
  findScimTokenByHash,
  insertScimToken,
  listScimTokens,
  revokeScimToken,
  type ScimTokenRow,
  touchScimToken,
} from '../store/people/scim_tokens.ts';

/** A directory that calls with a SCIM token: it acts in one enterprise. */
export interface Directory {
  readonly tokenId: string;
  readonly enterpriseId: string;
}

const DAY_MS = 24 * 3600 * 1000;
const USED_RESOLUTION_MS = 60_000;

/**
 * Creates a token for a directory. Only this reply contains its text, because only its hash is stored. For owners: the
 * directory may remove admins and owners, as only owners may. Refuses with `admin_required`, `not_found`,
 * `public_url_missing`, `limit_reached`.
 */
export async function createScimToken(
  context: ServiceContext,
  caller: Caller,
  input: ScimTokenInput,
): Promise<Result<CreatedScimToken, ApiError>> {
  if (context.local !== null) return err(onlyHosted());
  if (!mayActAs(caller, 'owner')) return err(ownersOnly());
  const { publicUrl } = context;
  if (publicUrl === null) return err(apiError('public_url_missing', 'set SVC_PUBLIC_URL first: directories call it'));
  const token = SCIM_TOKEN_PREFIX + randomToken();
  return commit(context, controlChain(caller), async () => {
    const now = nowText(context);
    const { enterpriseId } = caller;
    if ((await countLiveScimTokens(context.database, enterpriseId, now)) >= MAX_SCIM_TOKENS) return err(tooMany());
    const row: ScimTokenRow = {
      id: freshId(context, 'sct'),
      enterpriseId,
      name: input.name,
      tokenHash: await sha256Base64Url(token),
      createdBy: caller.userId,
      createdAt: now,
      expiresAt: new Date(context.clock.now() + input.expires_in_days * DAY_MS).toISOString(),
      lastUsedAt: null,
      revokedAt: null,
    };
    return ok({
      statements: [insertScimToken(context.database, row)],
      events: [tokenEvent('control.scim_token.created', caller, row)],
      value: { ...toRecord(row), token, base_url: publicUrl + SCIM_PATH },
    });
  });
}

/** The tokens of the caller's enterprise, oldest first, without their text. Refuses with `admin_required`, `invalid_cursor`. */
export async function listScimTokenPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<ScimTokenRecord>, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  return readPageById(query, 'sct', {
    read: (from) => listScimTokens(context.database, { enterpriseId: caller.enterpriseId, ...from }),
    toItem: toRecord,
  });
}

/** Revokes a token permanently: its next call is refused. Refuses with `not_found`, `admin_required`. */
export async function removeScimToken(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findScimToken(context.database, caller.enterpriseId, id);
    if (row === null || row.revokedAt !== null) {
      return err(apiError('not_found', `there is no active token ${id}: list them with GET /v1/scim-tokens`));
    }
    if (!mayActAs(caller, 'admin')) return err(adminsOnly());
    return ok({
      statements: revokeScimToken(context.database, id, nowText(context)),
      events: [tokenEvent('control.scim_token.revoked', caller, row)],
      value: null,
    });
  });
}

/** The directory of a bearer token; null if the token does not exist, was revoked or has expired. */
export async function findDirectory(context: ServiceContext, token: string): Promise<Directory | null> {
  if (!token.startsWith(SCIM_TOKEN_PREFIX)) return null;
  const row = await findScimTokenByHash(context.database, await sha256Base64Url(token));
  const now = nowText(context);
  if (row === null || row.revokedAt !== null || row.expiresAt <= now) return null;
  if (row.lastUsedAt === null || Date.parse(now) - Date.parse(row.lastUsedAt) >= USED_RESOLUTION_MS) {
    context.defer('when a SCIM token was last used', () => touchScimToken(context.database, row.id, now));
  }
  return { tokenId: row.id, enterpriseId: row.enterpriseId };
}

function toRecord(row: ScimTokenRow): ScimTokenRecord {
  return {
    id: row.id,
    name: row.name,
    created_by: row.createdBy,
    created_at: row.createdAt,
    expires_at: row.expiresAt,
    last_used_at: row.lastUsedAt,
    revoked_at: row.revokedAt,
  };
}

function tokenEvent(type: AuditDraft['type'], caller: Caller, row: ScimTokenRow): AuditDraft {
  return { type, actor: caller.userId, data: { 'svc.control.resource': row.id } };
}

function onlyHosted(): ApiError {
  return apiError('not_found', 'a control plane on your own machine has one user and no directory');
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'SCIM tokens need the role admin or owner: ask an admin');
}

function ownersOnly(): ApiError {
  return apiError(
    'admin_required',
    'only an owner creates SCIM tokens, because a directory may remove admins: ask one',
  );
}

function tooMany(): ApiError {
  const message = `this enterprise has ${MAX_SCIM_TOKENS} SCIM tokens that work: revoke one first`;
  return apiError('limit_reached', message);
}
