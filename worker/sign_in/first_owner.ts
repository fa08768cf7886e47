import { parseEmail } from '../../shared/model/email.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type AuditDraft, type Change, commit } from '../kernel/commit.ts';
import { freshId, type ServiceContext } from '../kernel/service_context.ts';
import { newSignInLink } from '../services/people/sign_in.ts';
import { type Account, insertAccount } from '../store/accounts.ts';
import { isProvenAddress, listAccountsByVerifiedEmail } from '../store/identities.ts';
import { listIdentities } from '../store/enterprise_settings.ts';
import { passwordIdentity } from './password_identity.ts';
import { newUser, planEnterprise } from './sign_in_identity.ts';

/** An owner whom the operator made, and a link that signs a browser in as the owner once. */
export interface FirstOwner {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly url: string;
  readonly expiresAt: string;
  /** False if the owner was made before, and only the link is new. */
  readonly isNew: boolean;
}

interface OwnerInput {
  readonly email: string;
  /** Default: the address. */
  readonly enterprise: string | null;
}

/**
 * Makes an enterprise with its first owner, for the operator of a hosted control plane. The operator says whose the
 * address is, so it counts as verified: the owner's first sign-in that proves it joins this account. Until then the same
 * call makes another link; afterwards nobody can make a link to the account. Refuses with `invalid_input`, `not_found` in
 * local mode, `public_url_missing`, `identity_taken`.
 */
export async function makeFirstOwner(
  context: ServiceContext,
  { email, enterprise }: OwnerInput,
): Promise<Result<FirstOwner, ApiError>> {
  const address = parseEmail(email)?.address;
  if (address === undefined) return err(apiError('invalid_input', `${JSON.stringify(email)} is not an email address`));
  const { local, publicUrl } = context;
  if (local !== null) return err(apiError('not_found', ONE_USER));
  if (publicUrl === null) return err(apiError('public_url_missing', NO_URL));
  const known = await findFirstOwner(context, address);
  const enterpriseId = known?.enterprise.id ?? freshId(context, 'ent');
  return commit(context, { enterpriseId, writer: enterpriseId }, async () => {
    // Read again: another run, or a sign-in, may have come first.
    const now = await findFirstOwner(context, address);
    if (now?.enterprise.id !== known?.enterprise.id) return err(taken(address));
    if (now === null && (await isProvenAddress(context.database, address))) return err(taken(address));
    if (now !== null) return ok(await planLink(context, { ...now.user, publicUrl, isNew: false }, NOTHING));
    return planOwner(context, { address, enterprise, enterpriseId, publicUrl });
  });
}

const NOTHING = { statements: [], events: [] };

/** The owner with this address whom the operator made, and who has no way to sign in yet. */
async function findFirstOwner({ database }: ServiceContext, address: string): Promise<Account | null> {
  const [account, ...others] = await listAccountsByVerifiedEmail(database, address);
  if (account === undefined || others.length > 0 || account.user.suspendedAt !== null) return null;
  const identities = await listIdentities(database, account.user.id);
  return identities.length === 0 && account.user.role === 'owner' ? account : null;
}

async function planOwner(
  context: ServiceContext,
  made: {
    readonly address: string;
    readonly enterprise: string | null;
    readonly enterpriseId: string;
    readonly publicUrl: string;
  },
): Promise<Result<Change<FirstOwner>, ApiError>> {
  const { address, enterpriseId, publicUrl } = made;
  const { person, user } = newUser(context, passwordIdentity(address, ''), { enterpriseId, role: 'owner' });
  const { enterprise, events } = await planEnterprise(context, user, { provider: BY_LINK });
  const named = { ...enterprise, name: made.enterprise ?? enterprise.name };
  const change = await planLink(
    context,
    { ...user, publicUrl, isNew: true },
    {
      statements: insertAccount(context.database, { person, user, enterprise: named }),
      events: events.map(byOperator),
    },
  );
  return ok({ ...change, begins: [enterpriseId] });
}

const BY_LINK = 'link';

/** The operator is no user. */
function byOperator(event: AuditDraft): AuditDraft {
  return { ...event, actor: null };
}

async function planLink(
  context: ServiceContext,
  owner: { readonly id: string; readonly enterpriseId: string; readonly publicUrl: string; readonly isNew: boolean },
  { statements, events }: Pick<Change<never>, 'statements' | 'events'>,
): Promise<Change<FirstOwner>> {
  const { id, enterpriseId, publicUrl, isNew } = owner;
  const link = await newSignInLink(context, id);
  const made: AuditDraft = {
    type: 'control.sign_in_link.created',
    actor: null,
    data: { 'svc.control.resource': id },
  };
  const url = `${publicUrl}/auth/link/${link.code}`;
  return {
    statements: [...statements, ...link.statements],
    events: [...events, made],
    value: { userId: id, enterpriseId, url, expiresAt: link.expiresAt, isNew },
  };
}

const ONE_USER = 'a control plane on your own machine has one user, and "svc console" signs a browser in';
const NO_URL = 'SVC_PUBLIC_URL is not set: give the origin of this control plane, as its workers have it';

function taken(address: string): ApiError {
  const message = `${address} has an account here, and signs in by a way of its own: ask an owner for an invitation to another enterprise`;
  return apiError('identity_taken', message);
}
