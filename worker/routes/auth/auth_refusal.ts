import { toSentence } from '../../../shared/model/sentence.ts';
import { type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { messagePage } from '../../pages/frame/layout.ts';
import { withoutCalls } from '../../pages/frame/page_words.ts';
import type { AppContext } from '../http/app_env.ts';
import { page } from '../console/pages.ts';

/** What did not happen, and where to go from there. */
interface NotDone {
  readonly title: string;
  readonly next: { readonly path: string; readonly title: string };
}

const NOT_SIGNED_IN: NotDone = { title: 'Not signed in', next: { path: '/sign-in', title: 'Back to sign-in' } };

/** A refusal page for the person at the browser. */
export function refusalPage(c: AppContext, error: ApiError, { title, next } = NOT_SIGNED_IN): Promise<Response> {
  return page(c, messagePage(title, toSentence(withoutCalls(error.message)), next), ERROR_STATUS[error.code]);
}
