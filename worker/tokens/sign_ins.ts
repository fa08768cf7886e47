import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import type { SignInRecord } from '../../shared/wire/sign_ins.ts';
import type { Caller } from '../kernel/caller.ts';
import { commit } from '../kernel/commit.ts';
import { type PageQuery, readPage } from '../kernel/cursors.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { nowSeconds, nowText, type ServiceContext } from '../kernel/service_context.ts';
import type { BrowserSessionRow } from '../store/browser_sessions.ts';
import { revokeFamily, type TokenFamilyRow } from '../store/refresh_tokens.ts';
import { deleteBrowserSessionById, hasSignIn, listBrowserSessions, listFamilies } from '../store/sign_ins.ts';

const signInPosition = z.strictObject({ createdAt: z.string(), id: z.string() });

/** The caller's signed-in browsers and programs, newest first. Refuses with `invalid_cursor`. */
export async function listSignInPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<SignInRecord>, ApiError>> {
  const { database } = context;
  return readPage(query, {
    position: signInPosition,
    read: async (from) => {
      const page = { ...signInsOf(context, caller), ...from };
      const [browsers, programs] = await Promise.all([
        listBrowserSessions(database, page),
        listFamilies(database, page),
      ]);
      return [
        ...browsers.map((row) => browserRecord(row, caller)),
        ...programs.map((row) => programRecord(row, caller)),
      ].toSorted(newestFirst);
    },
    toItem: (record) => record,
    positionOf,
  });
}

function positionOf({ created_at: createdAt, id }: SignInRecord) {
  return { createdAt, id };
}

/** The same order as the database: by bytes, not by language. */
function newestFirst(a: SignInRecord, b: SignInRecord): number {
  const [one, other] = [a, b].map(({ created_at: createdAt, id }) => `${createdAt} ${id}`);
  if (one === undefined || other === undefined || one === other) return 0;
  return one < other ? 1 : -1;
}

/** Signs out a browser or a program of the caller from its next call. Refuses with `not_found`. */
export async function endSignIn(context: ServiceContext, caller: Caller, id: string): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    if (!(await hasSignIn(context.database, { ...signInsOf(context, caller), id }))) {
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

function signInsOf(context: ServiceContext, { userId }: Caller) {
  return { userId, nowSeconds: nowSeconds(context) };
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
