import { z } from 'zod';
import { OWNERS } from '../../../shared/model/host_binding.ts';
import { ok } from '../../../shared/model/result.ts';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import { hostBindingInput, type HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import { explainInput } from '../../../shared/wire/host_bindings.ts';
import { newBindingPage } from '../../pages/bindings/binding_form.ts';
import { bindingDeletionPage, bindingPage } from '../../pages/bindings/binding.ts';
import { bindingsPage } from '../../pages/bindings/bindings.ts';
import { listQueryOf } from '../../pages/components/arranged_list.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import { describeBinding } from '../../services/bindings/binding_details.ts';
import { type Caller, writableOwner } from '../../kernel/caller.ts';
import { readAll } from '../../kernel/read_all.ts';
import { limitsOf } from '../../services/bindings/binding_limits.ts';
import { describeBindingReferences, describeReferences } from '../../services/bindings/reference_states.ts';
import { previewBindingRemoval } from '../../services/vault/removal_preview.ts';
import { describeVaultUse } from '../../services/vault/credential_uses.ts';
import { explainRequest } from '../../services/bindings/explain.ts';
import { createHostBinding, listHostBindingPage, removeHostBinding } from '../../services/bindings/host_bindings.ts';
import type { AppContext } from '../http/app_env.ts';
import { bindingRecordOf, schemeOf, refusedBindingForm, listStoredReferences } from '../api/binding_fields.ts';
import { confirmedChange } from './confirmed_change.ts';
import {
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  toRefusedForm,
  dropEmpty,
  ownerChoice,
} from './console.ts';
import { consolePage } from './pages.ts';

/** `GET /bindings?q=&sort=&page=&method=&url=`: the bindings, and an explanation of a request. */
export const getBindings = forReader(async (c, caller) => {
  const context = c.get('context');
  const { done, method = 'GET', url = '' } = c.req.query();
  const answered = await explainFor(c, caller, { method, url });
  const bindings = await readAll((query) => listHostBindingPage(context, caller, query));
  const [use, limited, referencesOf] = await Promise.all([
    describeVaultUse(context, caller),
    limitsOf(context, caller, bindings.items),
    describeBindingReferences(context, caller, bindings.items),
  ]);
  const mayChange = ({ owner }: Pick<HostBindingRecord, 'owner'>) => writableOwner(caller, owner).ok;
  const query = listQueryOf(c.req.query());
  const nowMs = context.clock.now();
  const view = { bindings, query, done, use, limited, referencesOf, mayChange, nowMs, ...answered };
  return consolePage(c, caller, bindingsPage(view));
});

async function explainFor(c: AppContext, caller: Caller, values: { readonly method: string; readonly url: string }) {
  if (values.url === '') return { question: { ...EMPTY_FORM, values }, explanation: null };
  const parsed = explainInput.safeParse(values);
  if (!parsed.success) return { question: invalidForm(values, parsed.error), explanation: null };
  const explanation = await explainRequest(c.get('context'), caller, parsed.data);
  if (!explanation.ok) return { question: toRefusedForm(values, explanation.error), explanation: null };
  return { question: { ...EMPTY_FORM, values }, explanation: explanation.value };
}

/** `GET /bindings/new?scheme=&from=`: the form of a scheme, filled from a template. */
export const getNewBinding = forReader(async (c, caller) => {
  const typedIn = dropEmpty(c.req.query());
  const template = c
    .get('templates')()
    .find(({ name }) => name === typedIn['from']);
  const values = template === undefined ? typedIn : { ...templateValues(template), ...typedIn };
  return consolePage(c, caller, await formPage(c, caller, { ...EMPTY_FORM, values }));
});

/** A template's binding as form fields; the person replaces its placeholders. */
function templateValues({ binding }: BindingTemplate): Fields {
  const { credential_ref: _, sentinel, ...others } = binding;
  const texts = Object.entries(others).map(([name, value]): [string, string] => {
    return [name, Array.isArray(value) ? value.join(', ') : String(value)];
  });
  const stand = z.object({ value: z.string(), env: z.string().default('') }).safeParse(sentinel);
  return {
    ...Object.fromEntries(texts),
    ...(stand.success && { sentinel_value: stand.data.value, sentinel_env: stand.data.env }),
  };
}

async function formPage(c: AppContext, caller: Caller, form: FormState) {
  const owner = OWNERS.find((each) => each === form.values['owner']) ?? 'personal';
  const reference = { owner, reference: form.values['credential_ref'] ?? '' };
  const stateOf = await describeReferences(c.get('context'), caller, [reference]);
  return newBindingPage({
    form,
    scheme: schemeOf(form.values),
    reference: { ...reference, state: stateOf(reference) },
    references: await listStoredReferences(c, caller),
    templates: c.get('templates')(),
    owners: ownerChoice(c, caller),
  });
}

/** `POST /bindings` */
export const submitBinding = forChange(async (c, caller, fields) => {
  const parsed = hostBindingInput.safeParse(bindingRecordOf(fields));
  if (!parsed.success)
    return formAgain(c, caller, await formPage(c, caller, refusedBindingForm(invalidForm(fields, parsed.error))));
  const created = await createHostBinding(c.get('context'), caller, parsed.data);
  if (created.ok) return redirectDone(c, '/bindings', 'binding_created');
  return formAgain(c, caller, await formPage(c, caller, toRefusedForm(fields, created.error)), created.error);
});

/** `GET /bindings/{id}` */
export const getBinding = forReader(async (c, caller) => {
  const context = c.get('context');
  const details = await describeBinding(context, caller, c.req.param('id') ?? '');
  if (!details.ok) return problem(c, caller, details.error);
  const view = { details: details.value, done: c.req.query('done'), nowMs: context.clock.now() };
  return consolePage(c, caller, bindingPage(view));
});

/** `/bindings/{id}/delete` */
export const bindingDeletion = confirmedChange({
  find: async (c, caller) => {
    const context = c.get('context');
    const id = c.req.param('id') ?? '';
    const preview = await previewBindingRemoval(context, caller, id);
    return preview.ok ? ok({ id, preview: preview.value, nowMs: context.clock.now() }) : preview;
  },
  name: ({ preview }) => preview.name,
  page: bindingDeletionPage,
  make: (context, caller, { id }) => removeHostBinding(context, caller, id),
  happened: 'deleted',
  next: () => ['/bindings', 'binding_deleted'],
});
