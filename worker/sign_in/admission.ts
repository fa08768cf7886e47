import { z } from 'zod';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Account } from '../store/accounts.ts';
import { isId } from '../../shared/wire/ids.ts';
import { parseEmail } from '../../shared/model/email.ts';
import type { Identity } from './provider.ts';

const names = z.array(z.string());

/** An enterprise's rules about who may sign in, and how. */
interface AdmissionRules {
  /** Empty: any. */
  readonly allowedDomains: readonly string[];
  /** Null: every configured one. */
  readonly allowedProviders: readonly string[] | null;
}

/** The stored rules. Throws if they are damaged, so that nobody signs in by a rule that cannot be read. */
export function admissionRules(
  enterprise: Pick<Account['enterprise'], 'allowedDomains' | 'allowedProviders'>,
): AdmissionRules {
  const { allowedDomains, allowedProviders } = enterprise;
  return {
    allowedDomains: names.parse(JSON.parse(allowedDomains)),
    allowedProviders: allowedProviders === null ? null : names.parse(JSON.parse(allowedProviders)),
  };
}

/** Why an identity may not sign in to an account; null if it may. */
export function admissionProblem(
  { user, enterprise }: Account,
  identity: Pick<Identity, 'email' | 'emailVerified'>,
  how: { readonly provider: string },
): ApiError | null {
  return user.suspendedAt === null ? enterpriseProblem(enterprise, identity, how) : accountUnavailable();
}

/**
 * The account that an identity signs in to: the first that admits it, or the first, whose refusal then answers. Null if
 * there is no account.
 */
export function chooseAccount(
  accounts: readonly Account[],
  identity: Pick<Identity, 'email' | 'emailVerified'>,
  how: { readonly provider: string },
): Account | null {
  return accounts.find((account) => admissionProblem(account, identity, how) === null) ?? accounts[0] ?? null;
}

/** Why an identity may not sign in to an enterprise; null if it may. */
export function enterpriseProblem(
  enterprise: Account['enterprise'],
  identity: Pick<Identity, 'email' | 'emailVerified'>,
  { provider }: { readonly provider: string },
): ApiError | null {
  const { allowedDomains, allowedProviders } = admissionRules(enterprise);
  if (isId('ent', provider)) {
    if (provider !== enterprise.id) return accountElsewhere();
  } else {
    if (enterprise.ssoRequired) return ssoRequired(enterprise.id);
    if (allowedProviders !== null && !allowedProviders.includes(provider)) return providerNotAllowed(allowedProviders);
  }
  // An unverified address matches no domain.
  const domain = identity.emailVerified ? parseEmail(identity.email)?.domain : undefined;
  const isAllowed = allowedDomains.length === 0 || (domain !== undefined && allowedDomains.includes(domain));
  return isAllowed ? null : domainNotAllowed();
}

/** The same answer for every reason that keeps an account from signing in. */
export function accountUnavailable(): ApiError {
  return apiError('account_unavailable', 'this account cannot sign in: ask an admin of your enterprise');
}

function providerNotAllowed(allowed: readonly string[]): ApiError {
  const others = allowed.length === 0 ? 'its own provider' : allowed.join(' or ');
  const message = `your enterprise does not allow this way to sign in: use ${others}`;
  return apiError('provider_not_allowed', message);
}

export function domainNotAllowed(): ApiError {
  const message =
    'your enterprise allows only verified addresses of its own domains: verify your address with the provider, or sign in with another account';
  return apiError('domain_not_allowed', message);
}

function ssoRequired(enterpriseId: string): ApiError {
  const loginUrl = ssoPath(enterpriseId);
  const message = `your enterprise requires sign-in with its own provider: start at ${loginUrl}`;
  return apiError('sso_required', message, { login_url: loginUrl });
}

/** The URL that starts a sign-in with an enterprise's provider. */
export function ssoPath(enterpriseId: string): string {
  return `/auth/${enterpriseId}/login`;
}

function accountElsewhere(): ApiError {
  const message = 'this address has an account in another enterprise: sign in to that one, or ask its admin';
  return apiError('account_elsewhere', message);
}
