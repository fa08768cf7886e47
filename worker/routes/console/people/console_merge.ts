import { ok, type Result } from '../../../../shared/model/result.ts';
import type { ApiError } from '../../../../shared/wire/errors.ts';
import type { MergeReply } from '../../../../shared/wire/people/merges.ts';
import type { Caller } from '../../../kernel/caller.ts';
import { type Merge, mergePage } from '../../../pages/people/merge.ts';
import { describePerson } from '../../../services/people/account.ts';
import { mergeEnterprise, previewMerge } from '../../../sign_in/merge.ts';
import type { AppContext } from '../../http/app_env.ts';
import { confirmedChange } from '../confirmed_change.ts';
import type { PageEntry } from '../console.ts';

/** `/enterprises/{id}/merge` */
const merge = confirmedChange<Merge, MergeReply>({
  find: findMerge,
  name: ({ preview }) => preview.slug,
  page: mergePage,
  make: (context, caller, { preview: { enterprise_id: from, slug: confirm } }) =>
    mergeEnterprise(context, caller, { from, confirm }),
  happened: 'moved',
  next: () => ['/enterprises', 'merged'],
});

async function findMerge(c: AppContext, caller: Caller): Promise<Result<Merge, ApiError>> {
  const context = c.get('context');
  const preview = await previewMerge(context, caller, c.req.param('id') ?? '');
  if (!preview.ok) return preview;
  const { enterprise: into } = await describePerson(context, caller);
  return ok({ preview: preview.value, into });
}

export const MERGE_PAGES: readonly PageEntry[] = [
  ['get', '/enterprises/{id}/merge', merge.ask],
  ['post', '/enterprises/{id}/merge', merge.submit],
];
