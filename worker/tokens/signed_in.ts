import { PERSONAL_TOKEN_PREFIX, type Scope } from '../../shared/wire/tokens.ts';
import type { Caller } from '../kernel/caller.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import { nowSeconds } from '../kernel/service_context.ts';
import type { TokenContext } from './token_context.ts';
import { accountOfBearer, accountOfSession } from '../services/people/sign_in.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { findLiveFamily } from '../store/refresh_tokens.ts';
import { verifyAccessToken } from './access_tokens.ts';
import { openPersonalToken } from './personal_tokens.ts';

/** The caller, and the scopes of its call. */
export interface SignedIn {
  readonly caller: Caller;
  /** The scopes of a personal token; null for a signed-in user, who may do everything. */
  readonly scopes: readonly Scope[] | null;
}

/** The user of a bearer token: the local key, a personal token or an access token; null if it is not valid. */
export async function findUserOfBearer(context: TokenContext, token: string): Promise<SignedIn | null> {
  if (token.startsWith('svc_local_')) return toWhole(toCaller(await accountOfBearer(context, token)));
  if (token.startsWith(PERSONAL_TOKEN_PREFIX)) return findByPersonalToken(context, token);
  return findByAccessToken(context, token);
}

/** The user of a browser's session token; null if there is none. */
export async function findUserOfBrowser(context: TokenContext, token: string): Promise<SignedIn | null> {
  const account = await accountOfSession(context, token);
  return account === null ? null : toWhole(toCaller(account, await sha256Base64Url(token)));
}

async function findByPersonalToken(context: TokenContext, token: string): Promise<SignedIn | null> {
  const opened = await openPersonalToken(context, token);
  if (opened === null) return null;
  const caller = toCaller(await findAccount(context.database, opened.userId));
  return caller === null
    ? null
    : { caller: { ...caller, scopes: opened.scopes, personalToken: opened.id }, scopes: opened.scopes };
}

/** A program that was signed out is out at once, not when its access token expires. */
async function findByAccessToken(context: TokenContext, token: string): Promise<SignedIn | null> {
  const claims = await verifyAccessToken(context, token);
  if (claims === null) return null;
  const family = await findLiveFamily(context.database, claims.family, nowSeconds(context));
  if (family === null || family.userId !== claims.sub) return null;
  return toWhole(toCaller(await findAccount(context.database, claims.sub), family.id));
}

function toWhole(caller: Caller | null): SignedIn | null {
  return caller === null ? null : { caller, scopes: null };
}

/** A suspended user is not authenticated, whatever the token. */
function toCaller(account: Account | null, signIn?: string): Caller | null {
  if (account === null || account.user.suspendedAt !== null) return null;
  const { id, enterpriseId, role } = account.user;
  return { userId: id, enterpriseId, role, ...(signIn !== undefined && { signIn }) };
}
