import { err, ok, type Result } from '../../../shared/model/result.ts';
import { type ApprovalView, approvalView, type ViewKey } from '../../../shared/wire/approval_views.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { findApproval, type ApprovalRow } from '../../store/approvals.ts';
import { insertView, listOpenViews, listViews, sealView } from '../../store/approval_views.ts';
import type { Caller } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { type Asker, ownViewer, timeAfterSeconds } from './approval_rows.ts';

/** A sidecar answers within a second or two; a view that nobody answers ends then. */
const VIEW_SECONDS = 120;
/** Of one approval at a time: the tabs of one person. */
const MOST_VIEWS = 8;

/**
 * Asks the sidecar that holds a request to show it to the page with this key. Only the person whose agent asks sees it: an
 * admin who may decide sees the summary. Refuses with `not_found`, `approval_not_held`, `too_many_open_calls`.
 */
export function requestView(
  context: ServiceContext,
  caller: Caller,
  id: string,
  key: ViewKey,
): Promise<Result<{ readonly id: string }, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findOwn(context, caller, id);
    if (row === null) return err(notFound(id));
    if (!isHeld(context, row)) return err(notHeld());
    const since = oldest(context);
    if ((await listViews(context.database, id, since)).length >= MOST_VIEWS) {
      return err(
        apiError('too_many_open_calls', `this request was shown ${MOST_VIEWS} times in two minutes: wait a moment`),
      );
    }
    const view = {
      id: freshId(context, 'apv'),
      approvalId: id,
      userId: caller.userId,
      key: JSON.stringify(key),
      sealed: null,
      createdAt: nowText(context),
    };
    return ok({ statements: insertView(context.database, view, since), events: [], value: { id: view.id } });
  });
}

/** The request as the sidecar sealed it; null while it has not. Refuses with `not_found`. */
export async function readView(
  context: ServiceContext,
  caller: Caller,
  { id, view }: { readonly id: string; readonly view: string },
): Promise<Result<{ readonly sealed: string | null }, ApiError>> {
  const views = await listViews(context.database, id, oldest(context));
  const found = views.find((row) => row.id === view && row.userId === caller.userId);
  return found === undefined ? err(notFound(id)) : ok({ sealed: found.sealed });
}

/** The pages that wait to be shown a request that this sidecar holds. */
export async function openViews(
  context: ServiceContext,
  { sidecarId }: Asker,
  row: ApprovalRow,
): Promise<readonly ApprovalView[]> {
  if (row.state !== 'pending' || row.sidecarId !== sidecarId) return [];
  const views = await listOpenViews(context.database, row.id, oldest(context));
  return views.map(({ id, key }) => approvalView.parse({ id, key: JSON.parse(key) }));
}

/** Keeps what a sidecar sealed for a page. Refuses with `not_found`, also for a request of another sidecar. */
export function takeView(
  context: ServiceContext,
  asker: Asker,
  id: string,
  { view_id: viewId, sealed }: { readonly view_id: string; readonly sealed: string },
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(asker), async () => {
    const row = await findOwn(context, asker, id);
    const views = row === null ? [] : await openViews(context, asker, row);
    const view = views.find((each) => each.id === viewId);
    if (view === undefined) return err(notFound(id));
    return ok({ statements: sealView(context.database, view, sealed), events: [], value: null });
  });
}

/** An approval of the caller's own requests. */
function findOwn(
  context: ServiceContext,
  asker: Pick<Asker, 'userId' | 'enterpriseId'>,
  id: string,
): Promise<ApprovalRow | null> {
  return findApproval(context.database, ownViewer(asker), { id, now: nowText(context) });
}

function isHeld(context: ServiceContext, { state, heldUntil }: ApprovalRow): boolean {
  return state === 'pending' && heldUntil !== null && nowText(context) < heldUntil;
}

function oldest(context: ServiceContext): string {
  return timeAfterSeconds(context, -VIEW_SECONDS);
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no approval ${id}: list them with GET /v1/approvals`);
}

function notHeld(): ApiError {
  return apiError('approval_not_held', 'no agent waits with this request any more, so nothing of it can be shown');
}
