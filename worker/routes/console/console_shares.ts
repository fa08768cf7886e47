import { hasRole } from '../../../shared/model/role.ts';
import { acceptInput, shareInput } from '../../../shared/wire/sharing/shares.ts';
import type { Caller } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { sharesPage } from '../../pages/people/shares.ts';
import { listSharable } from '../../services/sharing/sharable.ts';
import { listGroupPage } from '../../services/sharing/groups.ts';
import {
  acceptReceived,
  createShare,
  declineReceived,
  listSharePage,
  removeShare,
} from '../../services/sharing/shares.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  dropEmpty,
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

const idOf = (c: AppContext): string => c.req.param('id') ?? '';

/** `GET /shares` */
const getShares = forReader(async (c, caller) => consolePage(c, caller, await showShares(c, caller, EMPTY_FORM)));

async function showShares(c: AppContext, caller: Caller, form: FormState): Promise<Page> {
  const context = c.get('context');
  const [given, received, groups, sharable] = await Promise.all([
    readAll((query) => listSharePage(context, caller, { ...query, list: 'given' })),
    readAll((query) => listSharePage(context, caller, { ...query, list: 'received' })),
    readAll((query) => listGroupPage(context, caller, query)),
    listSharable(context, caller),
  ]);
  return sharesPage({
    given: given.items,
    received: received.items,
    groups: groups.items.map(({ id, name }) => ({ value: id, title: name })),
    ...sharable,
    needsAcceptance: !hasRole(caller.role, 'admin'),
    form,
    done: c.req.query('done'),
  });
}

/** `POST /shares` */
const submitShare = forChange(async (c, caller, fields) => {
  const parsed = shareInput.safeParse(dropEmpty(fields));
  const shared = parsed.success ? await createShare(c.get('context'), caller, parsed.data) : null;
  if (shared?.ok === true) return redirectDone(c, '/shares', 'shared');
  const invalid = parsed.success ? EMPTY_FORM : invalidForm(fields, parsed.error);
  const form = shared === null ? invalid : toRefusedForm(fields, shared.error);
  return formAgain(c, caller, await showShares(c, caller, form), shared === null ? null : shared.error);
});

/** `POST /shares/{id}/accept`, with the revision that the page showed. */
const submitAcceptance = forChange(async (c, caller, fields) => {
  const parsed = acceptInput.safeParse({ revision: fields['revision'] ?? '' });
  if (!parsed.success) {
    return formAgain(c, caller, await showShares(c, caller, invalidForm(fields, parsed.error)));
  }
  const accepted = await acceptReceived(c.get('context'), caller, idOf(c), parsed.data.revision);
  return accepted.ok ? redirectDone(c, '/shares', 'share_accepted') : problem(c, caller, accepted.error);
});

/** `POST /shares/{id}/decline` */
const submitRefusal = forChange(async (c, caller) => {
  const declined = await declineReceived(c.get('context'), caller, idOf(c));
  return declined.ok ? redirectDone(c, '/shares', 'share_declined') : problem(c, caller, declined.error);
});

/** `POST /shares/{id}/end` */
const submitEnd = forChange(async (c, caller) => {
  const ended = await removeShare(c.get('context'), caller, idOf(c));
  return ended.ok ? redirectDone(c, '/shares', 'share_ended') : problem(c, caller, ended.error);
});

export const SHARE_PAGES: readonly PageEntry[] = [
  ['get', '/shares', getShares],
  ['post', '/shares', submitShare],
  ['post', '/shares/{id}/accept', submitAcceptance],
  ['post', '/shares/{id}/decline', submitRefusal],
  ['post', '/shares/{id}/end', submitEnd],
];
