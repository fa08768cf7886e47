import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type Change, commit } from '../kernel/commit.ts';
import type { Caller } from '../kernel/caller.ts';
import { fromBase64Url, toBase64Url } from '../kernel/encoding.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { nowSeconds, nowText, type ServiceContext } from '../kernel/service_context.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { findBrowserSession } from '../store/browser_sessions.ts';
import {
  claimVerifiedEmail,
  insertIdentity,
  listAccountsByVerifiedEmail,
  listAccountsOfIdentity,
  guardSignedIn,
  touchIdentity,
} from '../store/identities.ts';
import { keyOf, newIdentity } from './sign_in_identity.ts';
import { admissionProblem } from './admission.ts';
import { voucherOf, voucherOfProvider } from './voucher.ts';
import type { Identity } from './provider.ts';

/** Who is adding a sign-in: a user, in one browser session. */
export interface Linker {
  readonly userId: string;
  /** The hash of the session's token. */
  readonly session: string;
}

/** The user and session of a browser; null for a program, which has none. */
export function linkerOf({ userId, signIn }: Caller): Linker | null {
  return signIn === undefined ? null : { userId, session: signIn };
}

const OFFER_SECONDS = 10 * 60;

const offerData = z.strictObject({
  linker: z.strictObject({ userId: z.string(), session: z.string() }),
  provider: z.string(),
  identity: z.strictObject({
    issuer: z.string(),
    subject: z.string(),
    email: z.string(),
    emailVerified: z.boolean(),
    displayName: z.string(),
  }),
  expiresAt: z.number(),
});
type Offer = z.output<typeof offerData>;

/** The data in the confirmation page's form, sealed with the master key. */
export interface SealedOffer {
  readonly offer: string;
  readonly seal: string;
}

/**
 * The identity that a provider returned, for a confirmation page: the browser may be signed in at the provider as
 * somebody else. Refuses with the codes of `linkIdentity`.
 */
export async function offerLink(
  context: ServiceContext,
  linker: Linker,
  found: { readonly provider: string; readonly identity: Identity },
): Promise<Result<SealedOffer, ApiError>> {
  const { issuer, subject, email, emailVerified, displayName } = found.identity;
  const identity = { issuer, subject, email, emailVerified, displayName };
  const { userId, session } = linker;
  const expiresAt = nowSeconds(context) + OFFER_SECONDS;
  const made: Offer = { linker: { userId, session }, provider: found.provider, identity, expiresAt };
  const linked = await findLinkedAccount(context, made);
  if (!linked.ok) return linked;
  const offer = toBase64Url(new TextEncoder().encode(JSON.stringify(made)));
  return ok({ offer, seal: await context.vault.mac(offerText(offer)) });
}

/**
 * Adds a sign-in to the account of the user who started, in the same session of the same browser. Refuses with
 * `sign_in_expired`, `identity_taken`, and the codes of an enterprise's sign-in rules.
 */
export async function linkIdentity(
  context: ServiceContext,
  caller: Caller,
  given: SealedOffer,
): Promise<Result<null, ApiError>> {
  const offer = await openOffer(context, given);
  const { linker } = offer ?? {};
  if (offer === null || linker?.userId !== caller.userId || linker.session !== caller.signIn) return err(linkOver());
  return commit(context, controlChain(caller), () => decide(context, offer));
}

async function openOffer(context: ServiceContext, { offer, seal }: SealedOffer): Promise<Offer | null> {
  if (!(await context.vault.macs(offerText(offer))).includes(seal)) return null;
  const opened = offerData.parse(JSON.parse(new TextDecoder().decode(fromBase64Url(offer))));
  return opened.expiresAt > nowSeconds(context) ? opened : null;
}

/** The text that the seal of an offer is computed over. */
function offerText(offer: string): string {
  return JSON.stringify(['svc link offer', offer]);
}

async function decide(context: ServiceContext, offer: Offer): Promise<Result<Change<null>, ApiError>> {
  const found = await findLinkedAccount(context, offer);
  if (!found.ok) return found;
  const { account, isKnown } = found.value;
  const { identity, linker, provider } = offer;
  const { email, emailVerified } = identity;
  const lives = guardSignedIn(linker, nowSeconds(context));
  if (isKnown) {
    const now = { email, emailVerified, lastSignInAt: nowText(context) };
    return ok({
      statements: [...lives, touchIdentity(context.database, keyOf(identity, offer), now)],
      events: [],
      value: null,
    });
  }
  const signedIn = { userId: linker.userId, enterpriseId: account.enterprise.id, signIn: linker.session };
  const vouchedBy = voucherOfProvider(provider) ?? (await voucherOf(context, signedIn));
  const row = newIdentity(context, identity, offer, {
    userId: linker.userId,
    personId: account.person.id,
    vouchedBy,
  });
  const isFirst = emailVerified && account.person.verifiedEmail === null;
  const claim = { key: keyOf(identity, offer), address: email };
  const claimed = isFirst ? [claimVerifiedEmail(context.database, account.person.id, claim)] : [];
  const data = { 'svc.control.resource': row.id, 'svc.control.provider': provider };
  return ok({
    statements: [...lives, insertIdentity(context.database, row), ...claimed],
    events: [{ type: 'control.identity.linked', actor: linker.userId, data }],
    value: null,
  });
}

/** The account that an identity may be added to, and whether it is there already. */
async function findLinkedAccount(
  context: ServiceContext,
  { linker, identity, provider }: Offer,
): Promise<Result<{ readonly account: Account; readonly isKnown: boolean }, ApiError>> {
  const { database } = context;
  const session = await findBrowserSession(database, linker.session, nowSeconds(context));
  const account = session?.userId === linker.userId ? await findAccount(database, linker.userId) : null;
  if (account === null || account.user.suspendedAt !== null) return err(linkOver());
  const known = await listAccountsOfIdentity(database, keyOf(identity, { provider }));
  const owned = identity.emailVerified ? await listAccountsByVerifiedEmail(database, identity.email) : [];
  if ([...known, ...owned].some(({ person }) => person.id !== account.person.id)) return err(identityTaken());
  const problem = admissionProblem(account, identity, { provider });
  return problem === null ? ok({ account, isKnown: known.length > 0 }) : err(problem);
}

export function linkOver(): ApiError {
  const message =
    'your session has ended, another user signed in meanwhile, or the ten minutes are over: start again at /identities';
  return apiError('sign_in_expired', message);
}

function identityTaken(): ApiError {
  const message =
    'this sign-in or its address belongs to another account here: if it is yours, sign in with it and remove it there';
  return apiError('identity_taken', message);
}
