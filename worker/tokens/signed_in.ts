import { PERSONAL_TOKEN_PREFIX, type Scope } from '../../shared/wire/tokens.ts';
import type { Caller } from '../kernel/caller.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import type { TokenContext } from './token_context.ts';
import { accountOfBearer, accountOfSession } from '../services/people/sign_in.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { findLiveFamily } from '../store/refresh_tokens.ts';
import { verifyAccessToken } from './access_tokens.ts';
import { openPersonalToken } from './personal_tokens.ts';

/** Who calls, and for what. */
export interface SignedIn {
  readonly caller: Caller;
  /** What a personal token is for; null for a user who signed in, and so for all that the user may do. */
  readonly scopes: readonly Scope[] | null;
}

/** The user of a bearer token: the local key, a personal token or an access token; null when it is none that is good. */
export async function signedInByBearer(context: TokenContext, token: string): Promise<SignedIn | null> {
  if (token.startsWith('svc_local_')) return whole(toCaller(await accountOfBearer(context, token)));
  if (token.startsWith(PERSONAL_TOKEN_PREFIX)) return byPersonalToken(context, token);
  return byAccessToken(context, token);
}

/** The user of a browser's session token; null when there is none. */
export async function signedInByBrowser(context: TokenContext, token: string): Promise<SignedIn | null> {
  const account = await accountOfSession(context, token);
  return account === null ? null : whole(toCaller(account, await sha256Base64Url(token)));
}

async function byPersonalToken(context: TokenContext, token: string): Promise<SignedIn | null> {
  const opened = await openPersonalToken(context, token);
  if (opened === null) return null;
  const caller = toCaller(await findAccount(context.database, opened.userId));
  return caller === null ? null : { caller, scopes: opened.scopes };
}

/** A program that was signed out is out at once, and not when its access token expires. */
async function byAccessToken(context: TokenContext, token: string): Promise<SignedIn | null> {
  const claims = await verifyAccessToken(context, token);
  if (claims === null) return null;
  const family = await findLiveFamily(context.database, claims.family, Math.floor(context.clock.now() / 1000));
  if (family === null || family.userId !== claims.sub) return null;
  return whole(toCaller(await findAccount(context.database, claims.sub), family.id));
}

function whole(caller: Caller | null): SignedIn | null {
  return caller === null ? null : { caller, scopes: null };
}

/** A suspended user is nobody, whatever it calls with. */
function toCaller(account: Account | null, signIn?: string): Caller | null {
  if (account === null || account.user.suspendedAt !== null) return null;
  const { id, enterpriseId, role } = account.user;
  return { userId: id, enterpriseId, role, ...(signIn !== undefined && { signIn }) };
}
