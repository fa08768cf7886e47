import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type Page, MAX_PAGE } from '../../shared/wire/primitives.ts';
import type { SignInRecord } from '../../shared/wire/sign_ins.ts';
import type { Caller } from '../services/caller.ts';
import { commit } from '../services/commit.ts';
import { controlChain } from '../services/policy_change.ts';
import { nowText, type ServiceContext } from '../services/service_context.ts';
import type { BrowserSessionRow } from '../store/browser_sessions.ts';
import { revokeFamily, type TokenFamilyRow } from '../store/refresh_tokens.ts';
import { deleteBrowserSessionById, listBrowserSessions, listFamilies } from '../store/sign_ins.ts';

/** The browsers and programs that are signed in as the caller, the newest first: all of them, up to the largest page. */
export async function listSignIns(context: ServiceContext, caller: Caller): Promise<Page<SignInRecord>> {
  const { browsers, programs } = await liveSignIns(context, caller);
  const items = [
    ...browsers.map((row) => browserRecord(row, caller)),
    ...programs.map((row) => programRecord(row, caller)),
  ];
  const newestFirst = items.toSorted((a, b) => b.created_at.localeCompare(a.created_at));
  return { items: newestFirst.slice(0, MAX_PAGE), next_cursor: null };
}

/** Signs a browser or a program of the caller out, with its next call. Refuses with `not_found`. */
export async function endSignIn(context: ServiceContext, caller: Caller, id: string): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const { browsers, programs } = await liveSignIns(context, caller);
    if (![...browsers, ...programs].some((row) => row.id === id)) {
      return err(apiError('not_found', `there is no sign-in ${id}: list them with GET /v1/sessions`));
    }
    const isProgram = id.startsWith('fam_');
    return ok({
      statements: [
        isProgram
          ? revokeFamily(context.database, id, nowText(context))
          : deleteBrowserSessionById(context.database, id),
      ],
      events: [
        { type: 'control.session.revoked' as const, actor: caller.userId, data: { 'svc.control.resource': id } },
      ],
      value: null,
    });
  });
}

async function liveSignIns(context: ServiceContext, caller: Caller) {
  const nowSeconds = Math.floor(context.clock.now() / 1000);
  const of = { userId: caller.userId, nowSeconds, limit: MAX_PAGE };
  const [browsers, programs] = await Promise.all([
    listBrowserSessions(context.database, of),
    listFamilies(context.database, of),
  ]);
  return { browsers, programs };
}

function browserRecord(row: BrowserSessionRow, caller: Caller): SignInRecord {
  const { lastSeenAt, tokenHash } = row;
  return { ...times(row, lastSeenAt), kind: 'browser', client: row.client, current: tokenHash === caller.signIn };
}

function programRecord(row: TokenFamilyRow, caller: Caller): SignInRecord {
  return { ...times(row, row.lastUsedAt), kind: 'program', client: row.client, current: row.id === caller.signIn };
}

function times(row: { id: string; createdAt: string; expiresAt: number }, lastSeenAt: string) {
  const expires_at = new Date(row.expiresAt * 1000).toISOString();
  return { id: row.id, created_at: row.createdAt, last_seen_at: lastSeenAt, expires_at };
}
