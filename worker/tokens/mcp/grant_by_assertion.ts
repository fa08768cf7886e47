import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { McpAccessToken } from '../../../shared/wire/mcp/mcp_clients.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { admissionProblem } from '../../sign_in/admission.ts';
import { isSameIssuer } from '../../sign_in/own_issuer.ts';
import { providerMcpClients } from '../../sign_in/provider_mcp_clients.ts';
import type { SignInContext } from '../../sign_in/sign_in_context.ts';
import { takeAttempt, type Throttle } from '../../sign_in/throttle.ts';
import type { Account } from '../../store/accounts.ts';
import { listProviderMembers } from '../../store/enterprise_settings.ts';
import { keepMcpClient } from '../../store/mcp/mcp_clients.ts';
import {
  findAssertedConnection,
  hasDisconnected,
  insertAssertedConnection,
  isAssertionUsed,
  type McpConnectionRow,
  renewAssertedConnection,
} from '../../store/mcp/mcp_connections.ts';
import type { TokenContext } from '../token_context.ts';
import { type AssertionRefusal, type MemberRefusal, toOAuthRefusal } from './assertion_refusal.ts';
import { checkAssertion, type CheckedAssertion, type ShownAssertion } from './identity_assertion.ts';
import { findMcpClient, type McpClient } from './mcp_client.ts';
import { accessTokenOf, CONNECTION_SECONDS, eventOf, targetProblem } from './mcp_connections.ts';
import { oauthError, type OAuthRefusal } from './oauth_refusal.ts';

/** What this needs: tokens, and what sign-in knows of the providers. */
export type AssertionContext = TokenContext & SignInContext;

/** Of one person: a client needs one every ten minutes. Refusals count too, because they are in the audit log. */
const ASSERTIONS: Throttle = { kind: 'mcp assertions', most: 60, windowSeconds: 10 * 60 };

/** A token request with an assertion (RFC 7523 section 2.1). */
export interface AssertionExchange extends ShownAssertion {
  readonly resource: readonly string[];
}

/**
 * Exchanges an assertion of the own OpenID provider of an enterprise for an access token of its person (decision 0158). The
 * enterprise has to allow its provider to connect the client. There is no refresh token: the provider decides about each token.
 * Refuses with `invalid_grant`, `invalid_scope`, `invalid_client`, `unauthorized_client`, `invalid_target`, `slow_down`.
 */
export async function grantByAssertion(
  context: AssertionContext,
  exchange: AssertionExchange,
): Promise<Result<McpAccessToken, OAuthRefusal>> {
  const target = targetProblem(context, exchange.resource);
  if (target !== null) return err(target);
  const checked = await checkAssertion(context, exchange);
  if (!checked.ok) return err(toOAuthRefusal(checked.error));
  const use = { assertion: checked.value, clientId: exchange.clientId };
  const found = await findMember(context, use.assertion);
  if (found.account === null) return err(toOAuthRefusal({ reason: found.refusal }));
  const allowed = await takeAttempt(context, ASSERTIONS, found.account.user.id);
  if (!allowed.ok) return err(oauthError('slow_down', allowed.error.message));
  const refusal = found.refusal ?? clientProblem(found.account, use.clientId);
  if (refusal !== null) return refuse(context, found.account, use, refusal);
  const client = await findMcpClient(context, found.account.user.id, use.clientId);
  if (!client.ok) return refuse(context, found.account, use, 'client_unknown');
  return connect(context, found.account, { ...use, client: client.value });
}

/** An assertion, and the client that shows it. */
interface Use {
  readonly assertion: CheckedAssertion;
  readonly clientId: string;
}

/** The user whom an assertion is about, with why it may not be used; both null never. */
type Found =
  | { readonly account: Account; readonly refusal: MemberRefusal | null }
  | { readonly account: null; readonly refusal: MemberRefusal };

/**
 * The user of an assertion: the one whom the provider that the enterprise has now has signed in as this subject, and who may sign in.
 * Other enterprises may have the same provider. If the person has not left several of them, the assertion does not say for which it is,
 * even if the person may sign in to one only: a suspension in one does not turn it to another.
 */
async function findMember(context: ServiceContext, assertion: CheckedAssertion): Promise<Found> {
  const { issuer, tenant } = assertion;
  const all = await listProviderMembers(context.database, assertion);
  const members = all.filter(
    ({ account: { enterprise }, issuer: set }) =>
      isSameIssuer(set, issuer) && (tenant === null || tenant === enterprise.id || tenant === enterprise.slug),
  );
  const present = members.filter(({ account }) => account.user.leftAt === null);
  if (present.length > 1) return { account: null, refusal: 'several_enterprises' };
  const [one, another] = present.length === 1 ? present : members;
  if (one === undefined || another !== undefined) return { account: null, refusal: 'not_admitted' };
  const { account, identity } = one;
  const isAdmitted = admissionProblem(account, identity, { provider: account.enterprise.id }) === null;
  return { account, refusal: isAdmitted ? null : 'not_admitted' };
}

function clientProblem({ enterprise }: Account, clientId: string): MemberRefusal | null {
  return providerMcpClients(enterprise).includes(clientId) ? null : 'client_not_allowed';
}

/** Decides again in the write: settings and users may have changed since they were read. */
async function connect(
  context: AssertionContext,
  { user }: Account,
  use: Use & { readonly client: McpClient },
): Promise<Result<McpAccessToken, OAuthRefusal>> {
  type Decision = Result<McpConnectionRow, AssertionRefusal>;
  const written = await commit<Decision>(context, controlChain(user), async () => {
    const found = await findMember(context, use.assertion);
    const account = found.account?.user.id === user.id ? found.account : null;
    const refusal = account === null ? 'not_admitted' : (found.refusal ?? (await useProblem(context, account, use)));
    if (refusal !== null) return ok(refused(user, use, refusal));
    return ok(await connection(context, user, use));
  });
  if (!written.ok) return err(oauthError('invalid_grant', written.error.message));
  const decision = written.value;
  return decision.ok ? ok(await accessTokenOf(context, decision.value)) : err(toOAuthRefusal(decision.error));
}

async function useProblem(
  { database }: ServiceContext,
  account: Account,
  { assertion, clientId }: Use,
): Promise<MemberRefusal | null> {
  const problem = clientProblem(account, clientId);
  if (problem !== null) return problem;
  if (await hasDisconnected(database, { userId: account.user.id, clientId })) return 'disconnected';
  return (await isAssertionUsed(database, assertion.hash)) ? 'used_before' : null;
}

/**
 * The connection of this client that the provider has made before, or a new one. One row for all of its tokens, so that the person
 * sees one client, and approvals are still those of the client when its next token comes.
 */
async function connection(
  context: ServiceContext,
  { id: userId, enterpriseId }: Account['user'],
  { assertion, client }: Use & { readonly client: McpClient },
): Promise<Change<Result<McpConnectionRow, AssertionRefusal>>> {
  const { database } = context;
  const seconds = nowSeconds(context);
  const now = nowText(context);
  const expiresAt = seconds + CONNECTION_SECONDS;
  const used = {
    assertion: { assertionHash: assertion.hash, expiresAt: assertion.expiresAt },
    now,
    nowSeconds: seconds,
  };
  const keep = keepMcpClient(database, client.id, expiresAt);
  const before = await findAssertedConnection(database, { userId, clientId: client.id }, seconds);
  if (before !== null) {
    const statements = [...renewAssertedConnection(database, { ...before, expiresAt }, used), keep];
    return { statements, events: [], value: ok(before) };
  }
  const row: McpConnectionRow = {
    id: freshId(context, 'mcc'),
    userId,
    provider: enterpriseId,
    clientId: client.id,
    clientName: client.name,
    // No browser was sent back, so no web page is the client's.
    redirectOrigin: '',
    createdAt: now,
    lastUsedAt: now,
    expiresAt,
    revokedAt: null,
    hasOperations: true,
    connectedBy: 'provider',
  };
  const { type, actor, data } = eventOf('control.mcp_client.connected', userId, row);
  return {
    statements: [...insertAssertedConnection(database, row, used), keep],
    events: [{ type, actor, data: { ...data, ...aboutAssertion(assertion) } }],
    adds: [{ kind: 'mcp_connections', holder: userId }],
    value: ok(row),
  };
}

async function refuse(
  context: ServiceContext,
  { user }: Account,
  use: Use,
  reason: MemberRefusal,
): Promise<Result<never, OAuthRefusal>> {
  const recorded: Result<unknown, ApiError> = await commit(context, controlChain(user), async () =>
    ok(refused(user, use, reason)),
  );
  return err(recorded.ok ? toOAuthRefusal({ reason }) : oauthError('server_error', 'the refusal was not recorded'));
}

function refused(
  { id }: Account['user'],
  { assertion, clientId }: Use,
  reason: MemberRefusal,
): Change<Result<never, AssertionRefusal>> {
  const about = { 'svc.control.resource': id, 'svc.mcp.client': clientId, 'svc.control.reason': reason };
  const data = { ...about, ...aboutAssertion(assertion) };
  return {
    statements: [],
    events: [{ type: 'control.mcp_client.refused', actor: null, data }],
    value: err({ reason }),
  };
}

function aboutAssertion({ issuer, subject }: CheckedAssertion): AuditDraft['data'] {
  return { 'svc.control.issuer': issuer, 'svc.control.subject': subject };
}
