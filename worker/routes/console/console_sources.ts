import { OWNERS, type Owner } from '../../../shared/model/host_binding.ts';
import { Secret } from '../../../shared/model/secret.ts';
import {
  sourceInput,
  sourceInputFields,
  type SourcePlan,
  type SourceRecord,
} from '../../../shared/wire/secret_sources.ts';
import { fieldText, formOf, readField } from '../../../shared/wire/sources/field_form.ts';
import { fieldsOf, isSourceKind, type SourceKind } from '../../../shared/wire/sources/source_table.ts';
import { apiError } from '../../../shared/wire/errors.ts';
import { type Caller, writableOwner } from '../../kernel/caller.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import { pathWith } from '../../pages/components/pager.ts';
import type { Page } from '../../pages/frame/layout.ts';
import { sourcePage, type TestedSource } from '../../pages/bindings/source.ts';
import { sourceFormPage } from '../../pages/bindings/source_form.ts';
import { findSourceRecord, planSource, storeSource, testSource } from '../../services/sources/secret_sources.ts';
import { describeVaultUse } from '../../services/vault/credential_uses.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  dropEmpty,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  toRefusedForm,
  ownerChoice,
} from './console.ts';
import { vaultPathIn } from './console_secrets.ts';
import { consolePage } from './pages.ts';

/** Never returned to the browser. */
const SECRET_FIELDS = ['key'];

interface Place {
  readonly path: string;
  readonly owner: Owner;
}

function placeIn({ path = '', owner }: Fields): Place {
  return { path: vaultPathIn(path), owner: OWNERS.find((each) => each === owner) ?? 'personal' };
}

/** `GET /secrets/sources/new?kind=&path=&owner=`: with the fields of the source at the path, if it is of that kind. */
export const getNewSource = forReader(async (c, caller) => {
  const query = c.req.query();
  const kind = kindIn(query);
  const record = await findSourceRecord(c.get('context'), caller, placeIn(query));
  const kept = record !== null && record.source.kind === kind ? textsOf(record) : {};
  const { path = '', owner = 'personal' } = query;
  return consolePage(c, caller, formPage(c, caller, { ...EMPTY_FORM, values: { ...kept, path, owner } }, kind));
});

function kindIn({ kind = '' }: Fields): SourceKind {
  return isSourceKind(kind) ? kind : 'client_credentials';
}

function textsOf({ source, description }: SourceRecord): Fields {
  const texts = Object.entries(source).map(([name, value]): [string, string] => [name, fieldText(value)]);
  return { ...Object.fromEntries(texts), description: description ?? '' };
}

function formPage(
  c: AppContext,
  caller: Caller,
  form: FormState,
  kind: SourceKind,
  plan: SourcePlan | null = null,
): Page {
  return sourceFormPage({ form, kind, plan, owners: ownerChoice(c, caller) });
}

const plannedInput = sourceInputFields.pick({ source: true, key: true });

/** `POST /secrets/sources`: stores the source, or says what it would mint. */
export const submitSource = forChange(async (c, caller, fields) => {
  const kind = kindIn(fields);
  return fields['do'] === 'plan' ? showPlan(c, caller, kind, fields) : store(c, caller, kind, fields);
});

async function showPlan(c: AppContext, caller: Caller, kind: SourceKind, fields: Fields): Promise<Response> {
  const parsed = plannedInput.safeParse({ source: sourceIn(kind, fields), key: dropEmpty(fields)['key'] });
  if (!parsed.success)
    return formAgain(c, caller, refusedPage(c, caller, kind, invalidForm(fields, parsed.error, SECRET_FIELDS)));
  const { source, key } = parsed.data;
  const planned = await planSource(c.get('context'), caller, {
    source,
    key: key === undefined ? null : new Secret(key),
  });
  if (!planned.ok) {
    const form = toRefusedForm(fields, planned.error, SECRET_FIELDS);
    return formAgain(c, caller, refusedPage(c, caller, kind, form), planned.error);
  }
  const { key: _, ...values } = fields;
  return consolePage(c, caller, formPage(c, caller, { ...EMPTY_FORM, values }, kind, planned.value));
}

async function store(c: AppContext, caller: Caller, kind: SourceKind, fields: Fields): Promise<Response> {
  const { path = '', owner, description, key } = dropEmpty(fields);
  const typed = { path: vaultPathIn(path), owner, description, key, source: sourceIn(kind, fields) };
  const parsed = sourceInput.safeParse(typed);
  if (!parsed.success)
    return formAgain(c, caller, refusedPage(c, caller, kind, invalidForm(fields, parsed.error, SECRET_FIELDS)));
  const stored = await storeSource(c.get('context'), caller, {
    ...parsed.data,
    key: new Secret(parsed.data.key ?? ''),
  });
  if (!stored.ok) {
    const form = toRefusedForm(fields, stored.error, SECRET_FIELDS);
    return formAgain(c, caller, refusedPage(c, caller, kind, form), stored.error);
  }
  const { record } = stored.value.value;
  return c.redirect(
    pathWith('/secrets/source', { path: record.path, owner: record.owner, done: 'source_stored' }),
    303,
  );
}

/** The fields of a source stand beside the others in the form. */
function refusedPage(c: AppContext, caller: Caller, kind: SourceKind, form: FormState): Page {
  const problems = form.problems.map(({ field, message }) => ({ field: field.replace(/^source\./, ''), message }));
  return formPage(c, caller, { ...form, problems }, kind);
}

/** The fields of the kind that are not empty. Others, such as those of another kind, are not read. */
function sourceIn(kind: SourceKind, fields: Fields) {
  const typed = Object.entries(fieldsOf(kind)).map(
    ([name, { schema }]) => [name, formOf(schema), (fields[name] ?? '').trim()] as const,
  );
  const given = typed.filter(([, , text]) => text !== '').map(([name, form, text]) => [name, readField(form, text)]);
  return { kind, ...Object.fromEntries(given) };
}

/** `GET /secrets/source?path=&owner=`; with `plan`, what would be minted. */
export const getSource = forReader(async (c, caller) => {
  const query = c.req.query();
  const place = placeIn(query);
  const planned = query['plan'] === undefined ? null : await planSource(c.get('context'), caller, place);
  if (planned !== null && !planned.ok) return problem(c, caller, planned.error);
  return showSource(c, caller, place, { plan: planned?.value ?? null, tested: null });
});

/** `POST /secrets/source`: asks the provider for a value and discards it. */
export const submitSourceTest = forChange(async (c, caller, fields) => {
  const place = placeIn(fields);
  const tested = await testSource(c.get('context'), caller, place);
  if (!tested.ok && tested.error.code !== 'credential_unavailable') return problem(c, caller, tested.error);
  return showSource(c, caller, place, {
    plan: null,
    tested: tested.ok ? tested.value : { refusal: tested.error.message },
  });
});

async function showSource(
  c: AppContext,
  caller: Caller,
  place: Place,
  more: { readonly plan: SourcePlan | null; readonly tested: TestedSource | null },
): Promise<Response> {
  const context = c.get('context');
  const record = await findSourceRecord(context, caller, place);
  if (record === null) {
    return problem(c, caller, apiError('not_found', `no ${place.owner} secret ${place.path} has a source`));
  }
  const use = await describeVaultUse(context, caller);
  const mayChange = writableOwner(caller, record.owner).ok;
  const view = { record, users: use.usersOf(record), lastUse: use.lastFetchOf(record), mayChange, ...more };
  return consolePage(c, caller, sourcePage({ ...view, done: c.req.query('done'), nowMs: context.clock.now() }));
}
