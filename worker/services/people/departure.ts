import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { DepartureReply } from '../../../shared/wire/members.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { listCredentialsOfOwners } from '../../store/connectors.ts';
import { countDeparting, depart, type Leaving, onlyUser } from '../../store/people/departures.ts';
import { findMember, hasOtherOwner, type MemberRow } from '../../store/members.ts';
import { findSealedSecret } from '../../store/secrets.ts';
import { revokeGivenUp } from '../oauth/given_up_tokens.ts';
import { readBundle } from '../oauth/oauth_bundle.ts';
import { findStoredClient } from '../oauth/oauth_client.ts';
import { revocationOfLeaving } from '../sources/given_up_values.ts';
import { openRow } from '../vault/secrets.ts';

/** What would leave with a member. Refuses with `not_found`, `admin_required`, `last_owner`. */
export async function describeDeparture(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<DepartureReply, ApiError>> {
  const member = await findLeaver(context, caller, id);
  return member.ok ? ok(await countDeparting(context.database, onlyUser(id), nowSeconds(context))) : member;
}

/**
 * Takes a member out of the enterprise, or the caller itself, in one write: what is the member's own is deleted, and its
 * sign-ins, tokens and sidecars end. Tokens of its OAuth credentials and minted values are revoked at their providers afterwards. Refuses
 * with `not_found`, `admin_required`, `last_owner`.
 */
export async function removeMember(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const member = await findLeaver(context, caller, id);
    if (!member.ok) return member;
    const type = id === caller.userId ? ('control.member.left' as const) : ('control.member.removed' as const);
    return ok(await planDeparture(context, member.value, { type, actor: caller.userId }));
  });
}

/** The change that takes a member out of its enterprise. */
export async function planDeparture(
  context: ServiceContext,
  member: MemberRow,
  event: Pick<AuditDraft, 'type' | 'actor'>,
): Promise<Change<null>> {
  const revokeTokens = await tokenRevocations(context, member.enterpriseId, onlyUser(member.id));
  return {
    statements: depart(context.database, member, nowText(context)),
    events: [{ ...event, data: { 'svc.control.resource': member.id } }],
    afterwards: () => revokeTokens.forEach((revoke) => revoke()),
    value: null,
  };
}

/** The member who goes, if the caller may have it go: itself, and as for changing members, others. */
export async function findLeaver(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<MemberRow, ApiError>> {
  const member = await findMember(context.database, caller.enterpriseId, id);
  if (member === null) return err(apiError('not_found', `there is no member ${id}: list them with GET /v1/members`));
  if (id !== caller.userId && !mayActAs(caller, member.role === 'member' ? 'admin' : 'owner')) {
    return err(apiError('admin_required', 'only an admin removes members, and only an owner admins and owners'));
  }
  if (member.role !== 'owner' || (await hasOtherOwner(context.database, caller.enterpriseId, id))) return ok(member);
  return err(apiError('last_owner', 'this is the only owner who can sign in: make another person an owner first'));
}

/** Calls that have revoked what leaves, once it is deleted: the tokens of each OAuth credential, and the values that sources hold. */
export async function tokenRevocations(
  context: ServiceContext,
  enterpriseId: string,
  { owners }: Leaving,
): Promise<(() => void)[]> {
  const calls: (() => void)[] = [];
  for (const credential of await listCredentialsOfOwners(context.database, owners)) {
    const client = findStoredClient(credential);
    const secret = client === null ? null : await findSealedSecret(context.database, credential);
    if (client === null || secret === null) continue;
    const bundle = readBundle(await openRow(context, secret));
    const event = (type: AuditDraft['type']): AuditDraft => ({
      type,
      actor: null,
      data: { 'svc.control.resource': credential.connectorId },
    });
    const events = {
      revoked: event('control.connector.tokens_revoked'),
      notRevoked: event('control.connector.tokens_not_revoked'),
    };
    calls.push(() => revokeGivenUp(context, { client, bundle, enterpriseId, events }));
  }
  return [...calls, await revocationOfLeaving(context, { owners })];
}
