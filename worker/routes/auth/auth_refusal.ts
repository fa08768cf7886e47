import { type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { messagePage } from '../../pages/frame/layout.ts';
import type { AppContext } from '../http/app_env.ts';
import { page } from '../console/pages.ts';

/** A refusal page for the person at the browser. */
export function refusalPage(c: AppContext, error: ApiError, title = 'Not signed in'): Promise<Response> {
  return page(c, messagePage(title, `${error.message}.`), ERROR_STATUS[error.code]);
}
