import type { Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { SignInContext } from '../../sign_in/sign_in_context.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import type { Page } from '../../pages/frame/layout.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  forReader,
  type PageRoute,
  problem,
  toRefusedForm,
} from './console.ts';
import { consolePage } from './pages.ts';

interface ConfirmedChange<T, Made> {
  /** What is changed. `fields` are the query's when the page asks, and the form's when the change is made. */
  find(c: AppContext, caller: Caller, fields: Fields): Result<T, ApiError> | Promise<Result<T, ApiError>>;
  /** What has to be typed. */
  name(found: T): string;
  page(found: T, form: FormState): Page;
  make(context: SignInContext, caller: Caller, found: T): Promise<Result<Made, ApiError>>;
  /** Completes `nothing was ...`, for another name. */
  happened: string;
  /** The page that follows, and the code by which it says what was done. */
  next(found: T, made: Made): readonly [path: string, code: string];
}

/** A change that destroys something: a page asks for its name, and the page's form makes it only if that was typed. */
export function confirmedChange<T, Made>(
  change: ConfirmedChange<T, Made>,
): {
  readonly ask: PageRoute;
  readonly submit: PageRoute;
} {
  const ask = forReader(async (c, caller) => {
    const found = await change.find(c, caller, c.req.query());
    return found.ok ? consolePage(c, caller, change.page(found.value, EMPTY_FORM)) : problem(c, caller, found.error);
  });
  const submit = forChange(async (c, caller, fields) => {
    const found = await change.find(c, caller, fields);
    if (!found.ok) return problem(c, caller, found.error);
    const name = change.name(found.value);
    if (fields['confirm']?.trim() !== name) {
      return formAgain(c, caller, change.page(found.value, toUnconfirmedForm(name, change.happened)));
    }
    const made = await change.make(c.get('context'), caller, found.value);
    if (made.ok) return redirectDone(c, ...change.next(found.value, made.value));
    return formAgain(c, caller, change.page(found.value, toRefusedForm({}, made.error)), made.error);
  });
  return { ask, submit };
}

function toUnconfirmedForm(name: string, happened: string): FormState {
  const message = `is not ${name}: nothing was ${happened}`;
  return { values: {}, problems: [{ field: 'confirm', message }], refusal: null };
}
