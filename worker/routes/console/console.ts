import type { z } from 'zod';
import { type ApiError, ERROR_STATUS, fieldProblems } from '../../../shared/wire/errors.ts';
import type { FormState } from '../../pages/components/form_field.ts';
import { pathWith } from '../../pages/components/pager.ts';
import { withoutCalls } from '../../pages/frame/page_words.ts';
import { problemPage } from '../../pages/frame/problem.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import type { OwnerChoice } from '../../pages/bindings/owner_field.ts';
import type { AppContext } from '../http/app_env.ts';
import { callerOfBrowser, crossSite, isSameOrigin } from '../http/authenticate.ts';
import { readBody } from '../http/late_body.ts';
import { consolePage, showSignIn } from './pages.ts';
import { toSentence } from '../../../shared/model/sentence.ts';

export type PageRoute = (c: AppContext) => Response | Promise<Response>;

/** A method, a path (`{name}` is one segment, `{name+}` also matches slashes) and its handler. */
export type PageEntry = readonly [method: 'get' | 'post', path: string, answer: PageRoute];

/** A page of the console. Without a session the user signs in first and then returns to it. */
export function forReader(answer: (c: AppContext, caller: Caller) => Promise<Response>): PageRoute {
  return async (c) => {
    const caller = await callerOfBrowser(c);
    return caller === null ? showSignIn(c, 401) : answer(c, caller);
  };
}

/** The fields of a form, each once and as text. */
export type Fields = Readonly<Record<string, string>>;

/** A change by a form of our own pages: other sites' pages must not use this browser's cookie. */
export function forChange(answer: (c: AppContext, caller: Caller, fields: Fields) => Promise<Response>): PageRoute {
  return forReader(async (c, caller) => {
    if (!isSameOrigin(c)) return problem(c, caller, crossSite());
    const { body, isLate } = await readBody(c, () => c.req.parseBody());
    const sender = isLate ? await callerOfBrowser(c) : caller;
    if (sender === null) return showSignIn(c, 401);
    const texts = Object.entries(body).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    return answer(c, sender, Object.fromEntries(texts));
  });
}

/** Whether a form asks for the owner: on one's own machine there is nobody else. */
export function ownerChoice(c: AppContext, caller: Caller): OwnerChoice {
  if (c.get('context').local !== null) return 'not_asked';
  return mayActAs(caller, 'admin') ? 'any' : 'personal';
}

/** An error page: what failed, the way back, and the request id in the log. */
export function problem(c: AppContext, caller: Caller, error: ApiError): Promise<Response> {
  return consolePage(
    c,
    caller,
    problemPage(error, { path: c.req.path, requestId: c.get('requestId') }),
    ERROR_STATUS[error.code],
  );
}

/** Redirects after a change to a page, with a code that names the change. */
export function redirectDone(c: AppContext, path: string, code: string): Response {
  return c.redirect(pathWith(path, { done: code }), 303);
}

/** The form with its input and problems beside the fields. `secret` fields are never returned. */
export function toRefusedForm(fields: Fields, error: ApiError, secrets: readonly string[] = []): FormState {
  const values = Object.fromEntries(Object.entries(fields).filter(([name]) => !secrets.includes(name)));
  const problems = problemsOf(error);
  return { values, problems, refusal: problems.length > 0 ? null : toSentence(withoutCalls(error.message)) };
}

function problemsOf({ details }: ApiError): { field: string; message: string }[] {
  const fields = details?.['fields'];
  if (!Array.isArray(fields)) return [];
  return fields
    .filter((each): each is { field: string; message: string } => typeof each?.field === 'string')
    .map(({ field, message }) => ({ field, message: withoutCalls(message) }));
}

/** What a form says that was read before somebody else's change: it shows that change, not the input. */
export function changedMeanwhile(what: string): string {
  return `Somebody changed ${what} meanwhile: this page shows what is stored now. Make your change again.`;
}

/** The same for input that a schema refuses. */
export function invalidForm(fields: Fields, error: z.core.$ZodError, secrets: readonly string[] = []): FormState {
  const values = Object.fromEntries(Object.entries(fields).filter(([name]) => !secrets.includes(name)));
  return { values, problems: fieldProblems(error), refusal: null };
}

/** Shows a form again with 4xx. */
export function formAgain(c: AppContext, caller: Caller, view: Page, error: ApiError | null = null): Promise<Response> {
  return consolePage(c, caller, view, error === null ? 400 : ERROR_STATUS[error.code]);
}

/** The fields that are not empty. */
export function dropEmpty(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}
