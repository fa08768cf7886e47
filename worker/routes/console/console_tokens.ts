import type { Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { SCOPES, tokenInput, type TokenRecord } from '../../../shared/wire/tokens.ts';
import { TICKED } from '../../pages/components/checkbox_field.ts';
import { EMPTY_FORM } from '../../pages/components/form_field.ts';
import { createdTokenPage, newTokenPage, SCOPE_FIELD, tokenRevocationPage } from '../../pages/people/personal_token.ts';
import type { Caller } from '../../kernel/caller.ts';
import { createPersonalToken, listPersonalTokenPage, removePersonalToken } from '../../tokens/personal_tokens.ts';
import type { AppContext } from '../http/app_env.ts';
import { confirmedChange } from './confirmed_change.ts';
import { type Fields, forChange, formAgain, forReader, invalidForm, toRefusedForm } from './console.ts';
import { findListed } from './find_listed.ts';
import { consolePage } from './pages.ts';

const DEFAULT_DAYS = '90';

/** `GET /account/tokens/new` */
export const getNewToken = forReader((c, caller) => {
  return consolePage(c, caller, newTokenPage({ ...EMPTY_FORM, values: { expires_in_days: DEFAULT_DAYS } }));
});

/**
 * `POST /account/tokens`: only this page shows the token, so there is no redirect to one that could be opened again.
 */
export const submitToken = forChange(async (c, caller, fields) => {
  const parsed = tokenInput.safeParse(inputOf(fields));
  if (!parsed.success) return formAgain(c, caller, newTokenPage(invalidForm(fields, parsed.error)));
  const created = await createPersonalToken(c.get('context'), caller, parsed.data);
  if (created.ok) return consolePage(c, caller, createdTokenPage(created.value), 201);
  return formAgain(c, caller, newTokenPage(toRefusedForm(fields, created.error)), created.error);
});

function inputOf({ name = '', expires_in_days: days = '', ...boxes }: Fields) {
  const scopes = SCOPES.filter((scope) => boxes[SCOPE_FIELD + scope] === TICKED);
  return { name, scopes, expires_in_days: /^\d+$/.test(days) ? Number(days) : days };
}

/** `/account/tokens/{id}/revoke` */
export const tokenRevocation = confirmedChange({
  find: liveToken,
  name: ({ name }) => name,
  page: tokenRevocationPage,
  make: (context, caller, { id }) => removePersonalToken(context, caller, id),
  happened: 'revoked',
  next: () => ['/account', 'token_revoked'],
});

function liveToken(c: AppContext, caller: Caller): Promise<Result<TokenRecord, ApiError>> {
  return findListed(
    c,
    (query) => listPersonalTokenPage(c.get('context'), caller, query),
    (id) => `there is no active token ${id}: the page Sign-ins and tokens lists yours`,
    (token) => token.revoked_at === null,
  );
}
