import { err, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { memberInput, type MemberRecord } from '../../../shared/wire/members.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import {
  memberPage,
  membersPage,
  membersRefusedPage,
  nameOfMember,
  suspensionPage,
} from '../../pages/people/members.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listMemberPage, mayChangeMember, putMember } from '../../services/people/members.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  changedMeanwhile,
  type Fields,
  redirectDone,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  toRefusedForm,
} from './console.ts';
import { findListed } from './find_listed.ts';
import { consolePage } from './pages.ts';
import { capitalise } from '../../../shared/model/sentence.ts';

const SHOWN = 100;

/** `GET /members` */
export const getMembersPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const { cursor, done: code } = c.req.query();
  const members = await listMemberPage(context, caller, { limit: SHOWN, cursor });
  if (!members.ok && members.error.code === 'admin_required') {
    return formAgain(c, caller, membersRefusedPage(capitalise(members.error.message)), members.error);
  }
  if (!members.ok) return problem(c, caller, members.error);
  const [isLocal, nowMs] = [context.local !== null, context.clock.now()];
  const mayChange = (member: MemberRecord) => mayChangeMember(caller, member);
  const view = { members: members.value, callerId: caller.userId, isLocal, mayChange, cursor, done: code, nowMs };
  return consolePage(c, caller, membersPage(view));
});

/** `GET /members/{id}` */
export const getMemberPage = forReader(async (c, caller) => {
  const member = await memberOf(c, caller);
  return member.ok
    ? consolePage(c, caller, memberPage(member.value, mayChangeMember(caller, member.value), EMPTY_FORM))
    : problem(c, caller, member.error);
});

const roleInput = memberInput.pick({ role: true });

/** `POST /members/{id}/role` */
export const submitRole = forChange(async (c, caller, fields) => {
  const member = await memberOf(c, caller);
  if (!member.ok) return problem(c, caller, member.error);
  const parsed = roleInput.safeParse({ role: fields['role'] });
  if (!parsed.success)
    return formAgain(
      c,
      caller,
      memberPage(member.value, mayChangeMember(caller, member.value), invalidForm(fields, parsed.error)),
    );
  const changed = await putMember(c.get('context'), caller, member.value.id, parsed.data, fields['revision'] ?? '');
  if (changed.ok) return redirectDone(c, '/members', 'member_changed');
  return refuseChange(c, caller, fields, changed.error);
});

/** Shows the member again: after somebody else's change as it is now, otherwise with the input. */
async function refuseChange(c: AppContext, caller: Caller, fields: Fields, error: ApiError): Promise<Response> {
  const member = await memberOf(c, caller);
  if (!member.ok) return problem(c, caller, member.error);
  const stale = { ...EMPTY_FORM, refusal: changedMeanwhile('this member') };
  const form = error.code === 'conflict' ? stale : toRefusedForm(fields, error);
  return formAgain(c, caller, memberPage(member.value, mayChangeMember(caller, member.value), form), error);
}

/** `/members/{id}/suspend` */
export const suspension = confirmedChange({
  find: async (c, caller) => {
    const member = await memberOf(c, caller);
    return !member.ok || mayChangeMember(caller, member.value).suspension ? member : err(ownersOnly());
  },
  name: nameOfMember,
  page: suspensionPage,
  // Of no revision: it keeps the role, and is never too late.
  make: (context, caller, { id }) => putMember(context, caller, id, { suspended: true }),
  happened: 'changed',
  next: () => ['/members', 'member_suspended'],
});

/** `POST /members/{id}/resume` */
export const submitResumption = forChange(async (c, caller, fields) => {
  const member = await memberOf(c, caller);
  if (!member.ok) return problem(c, caller, member.error);
  const { revision = '' } = fields;
  const changed = await putMember(c.get('context'), caller, member.value.id, { suspended: false }, revision);
  return changed.ok ? redirectDone(c, '/members', 'member_resumed') : refuseChange(c, caller, {}, changed.error);
});

function ownersOnly(): ApiError {
  return apiError('admin_required', 'only an owner can suspend admins and owners: ask an owner');
}

export function memberOf(c: AppContext, caller: Caller): Promise<Result<MemberRecord, ApiError>> {
  return findListed(
    c,
    (query) => listMemberPage(c.get('context'), caller, query),
    (id) => `there is no member ${id}: the page Members lists them`,
  );
}
