import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { hostBindingInput } from '../../../shared/wire/host_binding.ts';
import { type BindingConflict, editBindingPage, fieldsOfBinding } from '../../pages/bindings/binding_edit.ts';
import { bindingFormFields } from '../../pages/bindings/binding_form.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import { type BindingDetails, describeBinding } from '../../services/bindings/binding_details.ts';
import { type Caller, writableOwner } from '../../kernel/caller.ts';
import { describeReferences } from '../../services/bindings/reference_states.ts';
import { putHostBinding } from '../../services/bindings/host_bindings.ts';
import type { AppContext } from '../http/app_env.ts';
import { bindingRecordOf, schemeOf, refusedBindingForm, listStoredReferences } from '../api/binding_fields.ts';
import {
  redirectDone,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  toRefusedForm,
} from './console.ts';
import { consolePage } from './pages.ts';

/** `GET /bindings/{id}/edit?scheme=`: the form with the stored values. */
export const getBindingEdit = forReader(async (c, caller) => {
  const details = await findChangeable(c, caller);
  if (!details.ok) return problem(c, caller, details.error);
  const { binding } = details.value;
  const scheme = c.req.query('scheme');
  const values = { ...fieldsOfBinding(binding), ...(scheme !== undefined && { scheme }) };
  const form = { ...EMPTY_FORM, values };
  return consolePage(
    c,
    caller,
    await editPage(c, caller, { details: details.value, form, revision: binding.updated_at }),
  );
});

/** `POST /bindings/{id}/edit`: replaces the binding, if it was not changed since. */
export const submitBindingEdit = forChange(async (c, caller, fields) => {
  const details = await findChangeable(c, caller);
  if (!details.ok) return problem(c, caller, details.error);
  const { revision = '', ...values } = fields;
  const { id, owner } = details.value.binding;
  const parsed = hostBindingInput.safeParse({ ...bindingRecordOf(values), owner });
  if (!parsed.success) {
    const form = refusedBindingForm(invalidForm(values, parsed.error));
    return formAgain(c, caller, await editPage(c, caller, { details: details.value, form, revision }));
  }
  const changed = await putHostBinding(c.get('context'), caller, id, parsed.data, revision);
  if (changed.ok) return redirectDone(c, `/bindings/${id}`, 'binding_changed');
  if (changed.error.code === 'conflict') return askAgain(c, caller, values, changed.error);
  const form = toRefusedForm(values, changed.error);
  return formAgain(c, caller, await editPage(c, caller, { details: details.value, form, revision }), changed.error);
});

/**
 * Somebody changed the binding meanwhile: shows the input beside the stored binding, and saving again replaces the
 * latter.
 */
async function askAgain(c: AppContext, caller: Caller, values: Fields, error: ApiError): Promise<Response> {
  const details = await findChangeable(c, caller);
  if (!details.ok) return problem(c, caller, details.error);
  const revision = details.value.binding.updated_at;
  const conflict = { differences: differences(fieldsOfBinding(details.value.binding), values) };
  const page = await editPage(c, caller, {
    details: details.value,
    form: { ...EMPTY_FORM, values },
    revision,
    conflict,
  });
  return formAgain(c, caller, page, error);
}

function differences(stored: Fields, typed: Fields): BindingConflict['differences'] {
  const fields = new Set([...bindingFormFields(schemeOf(stored)), ...bindingFormFields(schemeOf(typed))]);
  fields.delete('owner');
  return Array.from(fields, (field) => ({ field, stored: stored[field] ?? '', typed: typed[field] ?? '' })).filter(
    (each) => each.stored !== each.typed,
  );
}

async function editPage(
  c: AppContext,
  caller: Caller,
  view: {
    readonly details: BindingDetails;
    readonly form: FormState;
    readonly revision: string;
    readonly conflict?: BindingConflict;
  },
) {
  const { owner } = view.details.binding;
  const reference = { owner, reference: view.form.values['credential_ref'] ?? '' };
  const stateOf = await describeReferences(c.get('context'), caller, [reference]);
  return editBindingPage({
    ...view,
    reference: { ...reference, state: stateOf(reference) },
    scheme: schemeOf(view.form.values),
    references: await listStoredReferences(c, caller),
    conflict: view.conflict ?? null,
    nowMs: c.get('context').clock.now(),
  });
}

/** The binding of the path, if the caller may change it. Refuses with `not_found`, `admin_required`. */
async function findChangeable(c: AppContext, caller: Caller): Promise<Result<BindingDetails, ApiError>> {
  const details = await describeBinding(c.get('context'), caller, c.req.param('id') ?? '');
  if (!details.ok) return details;
  const owner = writableOwner(caller, details.value.binding.owner);
  return owner.ok ? ok(details.value) : err(owner.error);
}
