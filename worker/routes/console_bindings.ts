import { z } from 'zod';
import { INJECTION_SCHEMES, type InjectionScheme } from '../../shared/model/host_binding.ts';
import type { BindingTemplate } from '../../shared/wire/binding_template.ts';
import { hostBindingInput } from '../../shared/wire/host_binding.ts';
import { explainInput } from '../../shared/wire/host_bindings.ts';
import { newBindingPage } from '../pages/binding_form.ts';
import { bindingDeletionPage, bindingPage, bindingsPage } from '../pages/bindings.ts';
import { EMPTY_FORM, type FormState } from '../pages/components/form_field.ts';
import type { Caller } from '../services/caller.ts';
import { explainRequest } from '../services/explain.ts';
import {
  createHostBinding,
  getHostBinding,
  listHostBindingPage,
  removeHostBinding,
} from '../services/host_bindings.ts';
import { listSecretPage } from '../services/secrets.ts';
import type { AppContext } from './app_env.ts';
import {
  done,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  notConfirmed,
  problem,
  refusedForm,
  typed,
} from './console.ts';
import { consolePage } from './pages.ts';

const SHOWN = 100;

/** `GET /bindings?method=&url=`: the bindings, and what would happen to a request. */
export const getBindings = forReader(async (c, caller) => {
  const { cursor, done: code, method = 'GET', url = '' } = c.req.query();
  const bindings = await listHostBindingPage(c.get('context'), caller, { limit: SHOWN, cursor });
  if (!bindings.ok) return problem(c, caller, bindings.error);
  const answered = await explained(c, caller, { method, url });
  return consolePage(c, caller, bindingsPage({ bindings: bindings.value, cursor, done: code, ...answered }));
});

async function explained(c: AppContext, caller: Caller, values: { readonly method: string; readonly url: string }) {
  if (values.url === '') return { question: { ...EMPTY_FORM, values }, explanation: null };
  const parsed = explainInput.safeParse(values);
  if (!parsed.success) return { question: invalidForm(values, parsed.error), explanation: null };
  const explanation = await explainRequest(c.get('context'), caller, parsed.data);
  if (!explanation.ok) return { question: refusedForm(values, explanation.error), explanation: null };
  return { question: { ...EMPTY_FORM, values }, explanation: explanation.value };
}

/** `GET /bindings/new?scheme=&from=`: the form of a scheme, filled as a template says. */
export const getNewBinding = forReader(async (c, caller) => {
  const typedIn = typed(c.req.query());
  const template = c
    .get('templates')()
    .find(({ name }) => name === typedIn['from']);
  const values = template === undefined ? typedIn : { ...templateValues(template), ...typedIn };
  return consolePage(c, caller, await formPage(c, caller, { ...EMPTY_FORM, values }));
});

/** A template's binding as fields of the form; its placeholders are for the person to replace. */
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
  const secrets = await listSecretPage(c.get('context'), caller, { limit: SHOWN });
  const references = secrets.ok ? secrets.value.items.map(({ ref }) => ref) : [];
  const templates = c.get('templates')();
  return newBindingPage({ form, scheme: schemeOf(form.values), references: [...new Set(references)], templates });
}

function schemeOf(values: Fields): InjectionScheme {
  return INJECTION_SCHEMES.find((scheme) => scheme === values['scheme']) ?? 'bearer';
}

/** `POST /bindings` */
export const submitBinding = forChange(async (c, caller, fields) => {
  const parsed = hostBindingInput.safeParse(recordOf(fields));
  if (!parsed.success)
    return formAgain(c, caller, await formPage(c, caller, sentinelForm(invalidForm(fields, parsed.error))));
  const created = await createHostBinding(c.get('context'), caller, parsed.data);
  if (created.ok) return done(c, '/bindings', 'binding_created');
  return formAgain(c, caller, await formPage(c, caller, refusedForm(fields, created.error)), created.error);
});

/** The record that the fields of the form make. */
function recordOf(fields: Fields): Record<string, unknown> {
  const { allowed_hosts: allowed, sentinel_value: value, sentinel_env: env, ...plain } = typed(fields);
  const hosts = allowed?.split(/[\s,]+/).filter((host) => host !== '');
  const isSwap = value !== undefined || env !== undefined;
  return {
    ...plain,
    ...(hosts !== undefined && { allowed_hosts: hosts }),
    ...(isSwap && { emit_mechanism: 'sentinel-swap', sentinel: { value, ...(env !== undefined && { env }) } }),
  };
}

/** Problems of `sentinel.value` stand beside the field of the form. */
function sentinelForm(form: FormState): FormState {
  const problems = form.problems.map(({ field, message }) => ({
    field: field.replace(/^sentinel\./, 'sentinel_'),
    message,
  }));
  return { ...form, problems };
}

/** `GET /bindings/{id}` */
export const getBinding = forReader(async (c, caller) => {
  const binding = await getHostBinding(c.get('context'), caller, c.req.param('id') ?? '');
  return binding.ok ? consolePage(c, caller, bindingPage(binding.value)) : problem(c, caller, binding.error);
});

/** `GET /bindings/{id}/delete`: asks. */
export const askBindingDeletion = forReader(async (c, caller) => {
  const binding = await getHostBinding(c.get('context'), caller, c.req.param('id') ?? '');
  return binding.ok ? consolePage(c, caller, bindingDeletionPage(binding.value)) : problem(c, caller, binding.error);
});

/** `POST /bindings/{id}/delete` */
export const submitBindingDeletion = forChange(async (c, caller, { confirm = '' }) => {
  const binding = await getHostBinding(c.get('context'), caller, c.req.param('id') ?? '');
  if (!binding.ok) return problem(c, caller, binding.error);
  const { id, host } = binding.value;
  if (confirm.trim() !== host) return formAgain(c, caller, bindingDeletionPage(binding.value, notConfirmed(host)));
  const removed = await removeHostBinding(c.get('context'), caller, id);
  if (removed.ok) return done(c, '/bindings', 'binding_deleted');
  return formAgain(c, caller, bindingDeletionPage(binding.value, refusedForm({}, removed.error)), removed.error);
});
