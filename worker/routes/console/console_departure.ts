import { ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { DepartureReply } from '../../../shared/wire/members.ts';
import { accountDeletionPage } from '../../pages/people/account_deletion.ts';
import { type DeletedEnterprise, deletionPage } from '../../pages/people/enterprise_deletion.ts';
import { type Leaver, leavingPage, nameOfMember, removalPage } from '../../pages/people/members.ts';
import type { Caller } from '../../kernel/caller.ts';
import { describeEnterprise, describePerson } from '../../services/people/account.ts';
import { describeDeparture, removeMember } from '../../services/people/departure.ts';
import { describeDeletion, removeEnterprise } from '../../services/people/enterprise_deletion.ts';
import { describeAccountDeletion, removeAccount } from '../../sign_in/account_deletion.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import type { PageEntry } from './console.ts';
import { memberOf } from './console_members.ts';

/** `/members/{id}/remove` */
const removal = confirmedChange({
  find: findLeaver,
  name: ({ member }) => nameOfMember(member),
  page: removalPage,
  make: (context, caller, { member }) => removeMember(context, caller, member.id),
  happened: 'removed',
  next: () => ['/members', 'member_removed'],
});

async function findLeaver(c: AppContext, caller: Caller): Promise<Result<Leaver, ApiError>> {
  const member = await memberOf(c, caller);
  if (!member.ok) return member;
  const departure = await describeDeparture(c.get('context'), caller, member.value.id);
  return departure.ok ? ok({ member: member.value, departure: departure.value }) : departure;
}

/** `/enterprises/leave` */
const leaving = confirmedChange({
  find: findOwnDeparture,
  name: ({ enterprise }) => enterprise,
  page: ({ enterprise, departure }, form) => leavingPage(enterprise, departure, form),
  make: (context, caller) => removeMember(context, caller, caller.userId),
  happened: 'changed',
  next: () => ['/sign-in', 'left'],
});

async function findOwnDeparture(
  c: AppContext,
  caller: Caller,
): Promise<Result<{ readonly enterprise: string; readonly departure: DepartureReply }, ApiError>> {
  const context = c.get('context');
  const departure = await describeDeparture(context, caller, caller.userId);
  if (!departure.ok) return departure;
  const { enterprise } = await describePerson(context, caller);
  return ok({ enterprise, departure: departure.value });
}

/** `/enterprise/delete` */
const deletion = confirmedChange({
  find: findOwnEnterprise,
  name: ({ slug }) => slug,
  page: deletionPage,
  make: (context, caller, { slug }) => removeEnterprise(context, caller, slug),
  happened: 'deleted',
  next: () => ['/sign-in', 'enterprise_deleted'],
});

async function findOwnEnterprise(c: AppContext, caller: Caller): Promise<Result<DeletedEnterprise, ApiError>> {
  const context = c.get('context');
  const counted = await describeDeletion(context, caller);
  if (!counted.ok) return counted;
  const { name, slug } = await describeEnterprise(context, caller);
  return ok({ name, slug, deletion: counted.value });
}

/** `/account/delete` */
const accountDeletion = confirmedChange({
  find: (c, caller) => describeAccountDeletion(c.get('context'), caller),
  name: ({ confirm }) => confirm,
  page: accountDeletionPage,
  make: (context, caller, { confirm }) => removeAccount(context, caller, confirm),
  happened: 'deleted',
  next: () => ['/sign-in', 'account_deleted'],
});

/** The pages by which a member goes. */
export const DEPARTURE_PAGES: readonly PageEntry[] = [
  ['get', '/members/{id}/remove', removal.ask],
  ['post', '/members/{id}/remove', removal.submit],
  ['get', '/enterprises/leave', leaving.ask],
  ['post', '/enterprises/leave', leaving.submit],
  ['get', '/enterprise/delete', deletion.ask],
  ['post', '/enterprise/delete', deletion.submit],
  ['get', '/account/delete', accountDeletion.ask],
  ['post', '/account/delete', accountDeletion.submit],
];
