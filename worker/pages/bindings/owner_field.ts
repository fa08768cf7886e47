import { type FormState, radioField } from '../components/form_field.ts';
import type { Html } from '../frame/html.ts';

const PERSONAL = { value: 'personal', title: 'You' };
const ENTERPRISE = { value: 'enterprise', title: 'Your enterprise' };

/** Who owns what is made; the enterprise's is for admins to make, and to change. */
export function ownerField(form: FormState, isAdmin: boolean): Html {
  const choices = isAdmin ? [PERSONAL, ENTERPRISE] : [PERSONAL];
  const hint = isAdmin
    ? 'What the enterprise owns, its admins change and its members use.'
    : 'What your enterprise owns, its admins make.';
  return radioField(form, { name: 'owner', label: 'Owner', choices, hint });
}
