import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { EnterpriseInput, EnterpriseSettings } from '../../shared/wire/enterprise.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { type Caller, mayActAs } from '../kernel/caller.ts';
import { type Change, commit } from '../kernel/commit.ts';
import { targetProblem } from '../kernel/outbound.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { changedSince, revisionOf } from '../kernel/revision.ts';
import { nowText, type ServiceContext, timeAfter } from '../kernel/service_context.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import { type AdmittedSignIns, endOtherSignIns } from '../store/admitted_sign_ins.ts';
import type { Statement } from '../store/database.ts';
import {
  deleteEnterpriseOidc,
  type EnterpriseChange,
  type EnterpriseOidcRow,
  findEnterpriseOfDomain,
  findEnterpriseOidc,
  listDomains,
  listIdentities,
  type ProvenDomain,
  putEnterpriseOidc,
  setDomains,
  updateEnterprise,
} from '../store/enterprise_settings.ts';
import { type EnterpriseSamlRow, findEnterpriseSaml } from '../store/enterprise_saml.ts';
import type { IdentityRow } from '../store/identities.ts';
import { endAssertedConnections } from '../store/mcp/mcp_connections.ts';
import { listLiveOwners } from '../store/members.ts';
import { admissionProblem, admissionRules } from './admission.ts';
import { domainTaken, proveDomain } from './domain_proof.ts';
import { findOwnIssuer, isSameIssuer } from './own_issuer.ts';
import { describeSaml, isSameSaml, resolveSaml, samlStatements } from './saml/saml_settings.ts';
import { samlIssuer } from './saml/saml_sign_in.ts';
import { findUnregistered, keepAllowed, providerMcpClients } from './provider_mcp_clients.ts';
import { oidcSealPlace } from './providers/enterprise_provider.ts';

/** The caller's enterprise with its sign-in settings. */
export async function describeSettings(context: ServiceContext, caller: Caller): Promise<EnterpriseSettings> {
  const { enterprise } = await accountOf(context, caller);
  const oidc = await findEnterpriseOidc(context.database, enterprise.id);
  const domains = await listDomains(context.database, enterprise.id);
  const saml = await findEnterpriseSaml(context.database, enterprise.id);
  const rules = admissionRules(enterprise);
  const shown = {
    id: enterprise.id,
    slug: enterprise.slug,
    name: enterprise.name,
    created_at: enterprise.createdAt,
    billing_email: enterprise.billingEmail,
    allowed_domains: [...rules.allowedDomains],
    allowed_providers: rules.allowedProviders === null ? null : [...rules.allowedProviders],
    sso_required: enterprise.ssoRequired,
    domain_joining: enterprise.domainJoining,
    provider_mcp_clients: providerMcpClients(enterprise),
    oidc: oidc && {
      issuer: oidc.issuer,
      client_id: oidc.clientId,
      domains,
      redirect_path: `/auth/${enterprise.id}/callback`,
    },
    saml: saml && describeSaml(saml, domains),
  };
  // The client's secret is not shown, and a new one is a change too.
  return { ...shown, revision: revisionOf([shown, oidc?.updatedAt ?? null]) };
}

/**
 * Replaces the settings of the caller's enterprise: only if they do not change during the call, and with `revision`, only if they have
 * not changed since they were read. Each new domain must be proven first. Refuses with `admin_required`, `invalid_input`, `conflict`,
 * `domain_not_proven`, `domain_taken`, `would_lock_out`.
 */
export async function replaceSettings(
  context: ServiceContext,
  caller: Caller,
  input: EnterpriseInput,
  revision: string | null = null,
): Promise<Result<EnterpriseSettings, ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const { revision: seen } = await describeSettings(context, caller);
  const problem = changedSince('the settings', revision, seen) ?? inputProblem(context, input);
  if (problem !== null) return err(problem);
  const before = await findEnterpriseSaml(context.database, caller.enterpriseId);
  const unregistered = await findNewUnregistered(context, caller, input);
  if (unregistered !== null) return err(unregistered);
  const saml = await resolveSaml(context, input.saml, before, caller.enterpriseId);
  if (!saml.ok) return err(fieldError(saml.error.field, saml.error.message));
  const proven = await proveNewDomains(context, caller, domainsOf(input));
  if (!proven.ok) return proven;
  const found = { proven: proven.value, saml: saml.value, seen };
  const written = await commit(context, controlChain(caller), () => decide(context, caller, input, found));
  return written.ok ? ok(await describeSettings(context, caller)) : written;
}

/** What is read from elsewhere before the settings are written. */
interface Found {
  readonly proven: readonly ProvenDomain[];
  readonly saml: EnterpriseSamlRow | null;
  /** The revision of the settings that it was read for. */
  readonly seen: string | undefined;
}

function domainsOf({ oidc, saml }: EnterpriseInput): readonly string[] {
  return oidc?.domains ?? saml?.domains ?? [];
}

/** Clients that are already allowed may have expired: their id does no harm, and must not keep the other settings as they are. */
async function findNewUnregistered(
  context: ServiceContext,
  caller: Caller,
  { provider_mcp_clients: clients = [] }: EnterpriseInput,
): Promise<ApiError | null> {
  const before = providerMcpClients((await accountOf(context, caller)).enterprise);
  const id = await findUnregistered(
    context,
    clients.filter((each) => !before.includes(each)),
  );
  return id === null ? null : fieldError('provider_mcp_clients', `has ${id}, which no client has registered here`);
}

function inputProblem({ local }: ServiceContext, input: EnterpriseInput): ApiError | null {
  const { oidc, saml = null, sso_required: isRequired, provider_mcp_clients: clients = [] } = input;
  if (oidc === null && clients.length > 0) {
    return fieldError(
      'provider_mcp_clients',
      'needs the enterprise’s own OpenID provider: set oidc too, or leave it empty',
    );
  }
  if (oidc !== null && saml !== null) {
    return fieldError('saml', 'cannot be set together with oidc: an enterprise has one provider');
  }
  if (oidc === null) {
    const isMissing = isRequired && saml === null;
    return isMissing ? fieldError('sso_required', 'needs a provider of the enterprise: set oidc or saml too') : null;
  }
  const target = targetProblem(new URL(oidc.issuer), local !== null);
  return target === null ? null : fieldError('oidc.issuer', `cannot be used: ${target.message}`);
}

/** Those domains that the enterprise does not have yet, each proven to be its own. */
async function proveNewDomains(
  context: ServiceContext,
  { enterpriseId }: Caller,
  domains: readonly string[],
): Promise<Result<readonly ProvenDomain[], ApiError>> {
  const held = await listDomains(context.database, enterpriseId);
  const fresh = [...new Set(domains)].filter((domain) => !held.includes(domain));
  const proven: ProvenDomain[] = [];
  for (const domain of fresh) {
    const holder = (await findEnterpriseOfDomain(context.database, domain))?.id ?? null;
    const proof = await proveDomain(context, domain, { enterpriseId, holder });
    if (!proof.ok) return proof;
    proven.push({ domain, holder });
  }
  return ok(proven);
}

async function decide(
  context: ServiceContext,
  caller: Caller,
  input: EnterpriseInput,
  { proven, saml, seen }: Found,
): Promise<Result<Change<null>, ApiError>> {
  const stale = changedSince('the settings', seen, (await describeSettings(context, caller)).revision);
  if (stale !== null) return err(stale);
  const account = await accountOf(context, caller);
  if (!mayActAs(caller, 'owner') && (await changesProvider(context, caller, input, saml))) return err(ownersOnly());
  const clients = await clientsAfter(context, input, account);
  const change: EnterpriseChange = {
    name: input.name,
    billingEmail: input.billing_email,
    allowedDomains: JSON.stringify(input.allowed_domains),
    allowedProviders: input.allowed_providers === null ? null : JSON.stringify(input.allowed_providers),
    ssoRequired: input.sso_required,
    domainJoining: input.domain_joining ?? account.enterprise.domainJoining,
    providerMcpClients: JSON.stringify(clients),
  };
  const oidc = await oidcStatements(context, caller, input);
  if (!oidc.ok) return oidc;
  const after = { ...account, enterprise: { ...account.enterprise, ...change } };
  const issuer = issuerAfter(input, saml);
  const shutOut = await lockOutProblem(context, caller, after, issuer);
  if (shutOut !== null) return err(shutOut);
  const { enterpriseId } = caller;
  for (const { domain, holder } of proven) {
    const now = (await findEnterpriseOfDomain(context.database, domain))?.id ?? null;
    if (now !== holder) return err(domainTaken(domain));
  }
  const domains = { all: domainsOf(input), proven, provenAt: nowText(context) };
  const admitted = await findAdmittedSignIns(context, caller, input, issuer);
  const statements = [
    ...oidc.value,
    // After the provider, whose deletion empties the list of MCP clients.
    updateEnterprise(context.database, enterpriseId, change),
    ...samlStatements(context, enterpriseId, saml),
    ...setDomains(context.database, enterpriseId, domains),
    ...endOtherSignIns(context.database, admitted, nowText(context)),
    ...keepAllowed(context, clients),
    endAssertedConnections(context.database, enterpriseId, { except: clients, now: nowText(context) }),
  ];
  const data = { 'svc.control.resource': enterpriseId };
  const event = { type: 'control.enterprise.updated' as const, actor: caller.userId, data };
  return ok({ statements, events: [event], value: null });
}

/**
 * Without an OpenID provider there are none. Another provider than before must not find clients allowed, unless these settings name
 * them.
 */
async function clientsAfter(
  { database }: ServiceContext,
  { oidc, provider_mcp_clients: clients }: EnterpriseInput,
  { enterprise }: Account,
): Promise<readonly string[]> {
  if (oidc === null) return [];
  if (clients !== undefined) return [...new Set(clients)];
  const before = await findEnterpriseOidc(database, enterprise.id);
  const isSame = before !== null && isSameIssuer(before.issuer, oidc.issuer);
  return isSame ? providerMcpClients(enterprise) : [];
}

/**
 * Whether the settings change the provider or the domains. Whoever runs the provider can sign in as anybody of the
 * domains.
 */
async function changesProvider(
  { database }: ServiceContext,
  { enterpriseId }: Caller,
  input: EnterpriseInput,
  saml: EnterpriseSamlRow | null,
): Promise<boolean> {
  const { oidc } = input;
  if (!isSameSaml(await findEnterpriseSaml(database, enterpriseId), saml)) return true;
  const held = await listDomains(database, enterpriseId);
  const domains = domainsOf(input);
  const areSame = domains.every((domain) => held.includes(domain)) && held.every((it) => domains.includes(it));
  const before = await findEnterpriseOidc(database, enterpriseId);
  if (oidc === null || before === null) return oidc !== before || !areSame;
  const isSame =
    before.issuer === oidc.issuer && before.clientId === oidc.client_id && oidc.client_secret === undefined;
  return !isSame || !areSame;
}

/** Who may stay signed in: users who could sign in with these settings, in the same way. */
async function findAdmittedSignIns(
  context: ServiceContext,
  { enterpriseId }: Caller,
  { sso_required: isRequired, allowed_providers: allowed, allowed_domains: domains }: EnterpriseInput,
  issuer: string | null,
): Promise<AdmittedSignIns> {
  const before = await findOwnIssuer(context.database, enterpriseId);
  const isSame = issuer !== null && before !== null && isSameIssuer(before, issuer);
  const own = isSame ? [enterpriseId] : [];
  const named = allowed === null ? null : [...allowed, ...own];
  const exemptUserId = context.local?.userId ?? null;
  const except = isSame ? null : enterpriseId;
  return { enterpriseId, exemptUserId, providers: isRequired ? own : named, except, domains };
}

/** An omitted secret stays if issuer and client are unchanged: it is never sent to another issuer. */
async function oidcStatements(
  context: ServiceContext,
  { enterpriseId }: Caller,
  { oidc }: EnterpriseInput,
): Promise<Result<Statement[], ApiError>> {
  if (oidc === null) return ok([deleteEnterpriseOidc(context.database, enterpriseId)]);
  const before = await findEnterpriseOidc(context.database, enterpriseId);
  const sealedSecret = await secretOf(context, enterpriseId, oidc, before);
  if (sealedSecret === null) {
    return err(fieldError('oidc.client_secret', 'is missing: a new issuer or client needs its secret'));
  }
  const { issuer, client_id: clientId } = oidc;
  const now = nowText(context);
  const updatedAt = before === null ? now : timeAfter(now, before.updatedAt);
  const row = { enterpriseId, issuer, clientId, sealedSecret, updatedAt };
  return ok(putEnterpriseOidc(context.database, row));
}

async function secretOf(
  context: ServiceContext,
  enterpriseId: string,
  oidc: NonNullable<EnterpriseInput['oidc']>,
  before: EnterpriseOidcRow | null,
): Promise<string | null> {
  if (oidc.client_secret !== undefined) {
    return context.vault.seal(oidcSealPlace(enterpriseId), new Secret(oidc.client_secret));
  }
  const isSame = before?.issuer === oidc.issuer && before.clientId === oidc.client_id;
  return isSame ? sealAgain(context, before) : null;
}

/** Always sealed again, because the master key may have changed since it was read. */
async function sealAgain({ vault }: ServiceContext, row: EnterpriseOidcRow): Promise<string> {
  const place = oidcSealPlace(row.enterpriseId);
  const secret = await vault.open(place, row.sealedSecret);
  if (secret !== null) return vault.seal(place, secret);
  throw Object.assign(new Error('the vault cannot open a client secret'), { code: 'vault_entry_damaged' });
}

/**
 * Why settings would lock out users who must keep access: the caller and, if the caller is an admin, every owner.
 * Otherwise an admin could take the enterprise from its owners.
 */
async function lockOutProblem(
  context: ServiceContext,
  caller: Caller,
  after: Account,
  issuer: string | null,
): Promise<ApiError | null> {
  // An owner who came by the operator's link has no way yet that these settings could take away.
  const isNew = (await listIdentities(context.database, caller.userId)).length === 0 && mayActAs(caller, 'owner');
  if (!isNew && (await locksOut(context, after, issuer))) return lockOut();
  if (mayActAs(caller, 'owner')) return null;
  const owners = await listLiveOwners(context.database, caller.enterpriseId);
  for (const user of owners) {
    if (!(await locksOut(context, { ...after, user }, issuer))) return null;
  }
  return owners.length === 0 ? null : ownersLockedOut();
}

/** Whether a user could no longer sign in by any of their ways. The local user needs none. */
async function locksOut(context: ServiceContext, account: Account, issuer: string | null): Promise<boolean> {
  if (context.local?.userId === account.user.id) return false;
  const identities = await listIdentities(context.database, account.user.id);
  const isUsable = (identity: IdentityRow) =>
    identity.provider !== account.enterprise.id || (issuer !== null && isSameIssuer(identity.issuer, issuer));
  return !identities.some((identity) => isUsable(identity) && admissionProblem(account, identity, identity) === null);
}

function issuerAfter({ oidc }: EnterpriseInput, saml: EnterpriseSamlRow | null): string | null {
  if (oidc !== null) return oidc.issuer;
  return saml === null ? null : samlIssuer(saml.entityId);
}

async function accountOf(context: ServiceContext, { userId }: Caller): Promise<Account> {
  const account = await findAccount(context.database, userId);
  if (account === null) throw new Error('a signed-in user is not in the database');
  return account;
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'changing the enterprise needs the role admin: ask an admin');
}

function ownersOnly(): ApiError {
  const message =
    'only an owner can change the enterprise’s provider and domains, because whoever runs the provider can sign in as any user: ask an owner';
  return apiError('admin_required', message);
}

function lockOut(): ApiError {
  const message =
    'you could not sign in again with these settings: first sign in once in a way that they allow, then change them';
  return apiError('would_lock_out', message);
}

function ownersLockedOut(): ApiError {
  const message =
    'no owner of the enterprise could sign in again with these settings: keep a way in for one of them, or ask an owner to make the change';
  return apiError('would_lock_out', message);
}

function fieldError(field: string, message: string): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}
