import { err, ok, type Result } from '../../../shared/model/result.ts';
import { listHiddenCharacters } from '../../../shared/model/shown_text.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { deleteSavedView, listSavedViews, putSavedView } from '../../store/audit/saved_views.ts';

/** A question to the audit log that a person keeps: which events, not of which time. */
export interface SavedView {
  readonly name: string;
  /** Filters as a query string. */
  readonly query: string;
}

const MOST_VIEWS = 30;
export const MAX_VIEW_NAME = 60;
const MAX_QUERY = 2_000;

/** The caller's own views, by name. */
export async function listViews({ database }: ServiceContext, { userId }: Caller): Promise<readonly SavedView[]> {
  return (await listSavedViews(database, userId)).map(({ name, query }) => ({ name, query }));
}

/**
 * Keeps a view, in place of one of the same name. It is nobody else's and decides nothing, so it is in no audit event. Refuses
 * with `invalid_input`, `limit_reached`.
 */
export async function saveView(
  context: ServiceContext,
  caller: Caller,
  { name: typed, query }: SavedView,
): Promise<Result<undefined, ApiError>> {
  const name = typed.trim();
  const problem = nameProblem(name) ?? (query.length > MAX_QUERY ? 'has filters that are too long' : null);
  if (problem !== null) {
    return err(apiError('invalid_input', `name ${problem}`, { fields: [{ field: 'name', message: problem }] }));
  }
  const { userId } = caller;
  const row = { userId, name, query, createdAt: nowText(context) };
  const put = await context.database.write(putSavedView(context.database, row, MOST_VIEWS));
  if (put.ok) return ok(undefined);
  return err(apiError('limit_reached', `you have ${MOST_VIEWS} saved views: forget one that you do not use`));
}

function nameProblem(name: string): string | null {
  if (name === '') return 'is empty: name the view, such as refused deletions';
  if (name.length > MAX_VIEW_NAME) return `is longer than ${MAX_VIEW_NAME} characters`;
  return listHiddenCharacters(name, false).length > 0 ? 'has invisible characters' : null;
}

/** Forgets a view of the caller; nothing happens if there is none of this name. */
export async function forgetView(context: ServiceContext, { userId }: Caller, name: string): Promise<void> {
  await context.database.write([deleteSavedView(context.database, { userId, name })]);
}
