import { ok, type Result } from '../../../../shared/model/result.ts';
import type { ApiError } from '../../../../shared/wire/errors.ts';
import { scimTokenInput, type ScimTokenRecord } from '../../../../shared/wire/scim_tokens.ts';
import { type Caller, mayActAs } from '../../../kernel/caller.ts';
import { EMPTY_FORM, type FormState } from '../../../pages/components/form_field.ts';
import type { Page } from '../../../pages/frame/layout.ts';
import { createdScimTokenPage, directoryPage, scimTokenRevocationPage } from '../../../pages/people/directory.ts';
import { createScimToken, listScimTokenPage, removeScimToken } from '../../../scim/scim_tokens.ts';
import type { AppContext } from '../../http/app_env.ts';
import { confirmedChange } from '../confirmed_change.ts';
import { forChange, formAgain, forReader, invalidForm, type PageEntry, problem, toRefusedForm } from '../console.ts';
import { findListed } from '../find_listed.ts';
import { consolePage } from '../pages.ts';

const SHOWN = 100;
const FRESH_FORM: FormState = { ...EMPTY_FORM, values: { expires_in_days: '366' } };

/** `GET /directory` */
const getDirectory = forReader(async (c, caller) => {
  const shown = await showDirectory(c, caller, FRESH_FORM);
  return shown.ok ? consolePage(c, caller, shown.value) : problem(c, caller, shown.error);
});

async function showDirectory(c: AppContext, caller: Caller, form: FormState): Promise<Result<Page, ApiError>> {
  const context = c.get('context');
  const { cursor, done } = c.req.query();
  const tokens = await listScimTokenPage(context, caller, { limit: SHOWN, cursor });
  if (!tokens.ok) return tokens;
  const mayCreate = context.local === null && mayActAs(caller, 'owner');
  return ok(directoryPage({ tokens: tokens.value, mayCreate, form, cursor, done, nowMs: context.clock.now() }));
}

/** `POST /directory/tokens`: only this page shows the token, so there is no redirect to one that could be opened again. */
const submitToken = forChange(async (c, caller, fields) => {
  const days = fields['expires_in_days'] ?? '';
  const parsed = scimTokenInput.safeParse({
    name: fields['name'] ?? '',
    expires_in_days: /^\d+$/.test(days) ? Number(days) : days,
  });
  const created = parsed.success ? await createScimToken(c.get('context'), caller, parsed.data) : null;
  if (created?.ok === true) return consolePage(c, caller, createdScimTokenPage(created.value), 201);
  if (created?.ok === false && created.error.code !== 'limit_reached') return problem(c, caller, created.error);
  const invalid = parsed.success ? EMPTY_FORM : invalidForm(fields, parsed.error);
  const shown = await showDirectory(c, caller, created === null ? invalid : toRefusedForm(fields, created.error));
  if (!shown.ok) return problem(c, caller, shown.error);
  return formAgain(c, caller, shown.value, created === null ? null : created.error);
});

/** `/directory/tokens/{id}/revoke` */
const revocation = confirmedChange({
  find: findLiveToken,
  name: ({ name }) => name,
  page: scimTokenRevocationPage,
  make: (context, caller, { id }) => removeScimToken(context, caller, id),
  happened: 'revoked',
  next: () => ['/directory', 'token_revoked'],
});

function findLiveToken(c: AppContext, caller: Caller): Promise<Result<ScimTokenRecord, ApiError>> {
  return findListed(
    c,
    (query) => listScimTokenPage(c.get('context'), caller, query),
    (id) => `there is no active token ${id}: the page Directory lists them`,
    (token) => token.revoked_at === null,
  );
}

export const DIRECTORY_PAGES: readonly PageEntry[] = [
  ['get', '/directory', getDirectory],
  ['post', '/directory/tokens', submitToken],
  ['get', '/directory/tokens/{id}/revoke', revocation.ask],
  ['post', '/directory/tokens/{id}/revoke', revocation.submit],
];
