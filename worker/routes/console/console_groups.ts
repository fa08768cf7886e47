import { ok, type Result } from '../../../shared/model/result.ts';
import { mayManageGroups } from '../../../shared/sharing/share_rules.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { groupInput, type GroupRecord } from '../../../shared/wire/sharing/groups.ts';
import type { Caller } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import { type Choice, EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { groupDeletionPage, groupPage, groupsPage } from '../../pages/people/groups.ts';
import { listMemberPage } from '../../services/people/members.ts';
import {
  addGroupMember,
  createGroup,
  getGroup,
  listGroupMemberPage,
  listGroupPage,
  putGroup,
  removeGroup,
  removeGroupMember,
} from '../../services/sharing/groups.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  changedMeanwhile,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  type PageEntry,
  problem,
  redirectDone,
  toRefusedForm,
} from './console.ts';
import { consolePage } from './pages.ts';

const SHOWN = 100;
const idOf = (c: AppContext): string => c.req.param('id') ?? '';

/** `GET /groups` */
const getGroups = forReader(async (c, caller) => {
  const shown = await showGroups(c, caller, EMPTY_FORM);
  return shown.ok ? consolePage(c, caller, shown.value) : problem(c, caller, shown.error);
});

/** `POST /groups` */
const submitGroup = forChange(async (c, caller, fields) => {
  const parsed = groupInput.safeParse({ name: fields['name'] ?? '' });
  const created = parsed.success ? await createGroup(c.get('context'), caller, parsed.data) : null;
  if (created?.ok === true) return redirectDone(c, `/groups/${created.value.id}`, 'group_created');
  const form = parsed.success ? EMPTY_FORM : invalidForm(fields, parsed.error);
  const refused = created === null ? form : toRefusedForm(fields, created.error);
  const shown = await showGroups(c, caller, refused);
  if (!shown.ok) return problem(c, caller, shown.error);
  return formAgain(c, caller, shown.value, created === null ? null : created.error);
});

async function showGroups(c: AppContext, caller: Caller, form: FormState): Promise<Result<Page, ApiError>> {
  const context = c.get('context');
  const { cursor, done } = c.req.query();
  const groups = await listGroupPage(context, caller, { limit: SHOWN, cursor });
  if (!groups.ok) return groups;
  const [mayManage, nowMs] = [mayManageGroups(caller), context.clock.now()];
  return ok(groupsPage({ groups: groups.value, mayManage, form, cursor, done, nowMs }));
}

/** `GET /groups/{id}` */
const getGroupPage = forReader(async (c, caller) => {
  const shown = await showGroup(c, caller, EMPTY_FORM);
  return shown.ok ? consolePage(c, caller, shown.value) : problem(c, caller, shown.error);
});

async function showGroup(c: AppContext, caller: Caller, form: FormState): Promise<Result<Page, ApiError>> {
  const context = c.get('context');
  const { cursor, done } = c.req.query();
  const group = await getGroup(context, caller, idOf(c));
  if (!group.ok) return group;
  const people = await listGroupMemberPage(context, caller, idOf(c), { limit: SHOWN, cursor });
  if (!people.ok) return people;
  const mayManage = mayManageGroups(caller);
  const others = mayManage ? await listOthers(c, caller) : [];
  return ok(groupPage({ group: group.value, people: people.value, others, mayManage, form, cursor, done }));
}

/** The members of the enterprise who are not in the group. */
async function listOthers(c: AppContext, caller: Caller): Promise<Choice[]> {
  const context = c.get('context');
  const all = await readAll((query) => listMemberPage(context, caller, query));
  const inside = await readAll((query) => listGroupMemberPage(context, caller, idOf(c), query));
  const ids = new Set(inside.items.map(({ id }) => id));
  return all.items
    .filter(({ id }) => !ids.has(id))
    .map(({ id, display_name: name, email }) => ({ value: id, title: email === null ? name : `${name} (${email})` }));
}

/** `POST /groups/{id}/rename` */
const submitName = forChange(async (c, caller, fields) => {
  const parsed = groupInput.safeParse({ name: fields['name'] ?? '' });
  if (!parsed.success) return showName(c, caller, invalidForm(fields, parsed.error));
  const renamed = await putGroup(c.get('context'), caller, idOf(c), parsed.data, fields['revision'] ?? '');
  if (renamed.ok) return redirectDone(c, `/groups/${idOf(c)}`, 'group_renamed');
  const { error } = renamed;
  if (error.code === 'name_taken') return showName(c, caller, toRefusedForm(fields, error), error);
  if (error.code !== 'conflict') return problem(c, caller, error);
  return showName(c, caller, { ...EMPTY_FORM, refusal: changedMeanwhile('this group') }, error);
});

async function showName(c: AppContext, caller: Caller, form: FormState, error?: ApiError): Promise<Response> {
  const shown = await showGroup(c, caller, form);
  return shown.ok ? formAgain(c, caller, shown.value, error ?? null) : problem(c, caller, shown.error);
}

/** `POST /groups/{id}/members` */
const submitAddition = forChange(async (c, caller, fields) => {
  const added = await addGroupMember(c.get('context'), caller, { id: idOf(c), user: fields['user'] ?? '' });
  return added.ok ? redirectDone(c, `/groups/${idOf(c)}`, 'group_member_added') : problem(c, caller, added.error);
});

/** `POST /groups/{id}/members/{user}/remove` */
const submitTakingOut = forChange(async (c, caller) => {
  const membership = { id: idOf(c), user: c.req.param('user') ?? '' };
  const removed = await removeGroupMember(c.get('context'), caller, membership);
  return removed.ok ? redirectDone(c, `/groups/${idOf(c)}`, 'group_member_removed') : problem(c, caller, removed.error);
});

/** `/groups/{id}/delete` */
const deletion = confirmedChange<GroupRecord, null>({
  find: (c, caller) => getGroup(c.get('context'), caller, idOf(c)),
  name: ({ name }) => name,
  page: groupDeletionPage,
  make: (context, caller, { id }) => removeGroup(context, caller, id),
  happened: 'deleted',
  next: () => ['/groups', 'group_deleted'],
});

export const GROUP_PAGES: readonly PageEntry[] = [
  ['get', '/groups', getGroups],
  ['post', '/groups', submitGroup],
  ['get', '/groups/{id}', getGroupPage],
  ['post', '/groups/{id}/rename', submitName],
  ['post', '/groups/{id}/members', submitAddition],
  ['post', '/groups/{id}/members/{user}/remove', submitTakingOut],
  ['get', '/groups/{id}/delete', deletion.ask],
  ['post', '/groups/{id}/delete', deletion.submit],
];
