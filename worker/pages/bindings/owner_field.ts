import { type FormState, radioField } from '../components/form_field.ts';
import type { Html } from '../frame/html.ts';

const PERSONAL = { value: 'personal', title: 'You' };
const ENTERPRISE = { value: 'enterprise', title: 'Your enterprise' };

/** The owner of a new item. Only admins create and change items of the enterprise. */
export function ownerField(form: FormState, isAdmin: boolean): Html {
  const choices = isAdmin ? [PERSONAL, ENTERPRISE] : [PERSONAL];
  const hint = isAdmin
    ? 'Admins change what the enterprise owns; its members use it.'
    : 'Only admins create items that your enterprise owns.';
  return radioField(form, { name: 'owner', label: 'Owner', choices, hint });
}
