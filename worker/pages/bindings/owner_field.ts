import { html } from 'hono/html';
import { type FormState, radioField } from '../components/form_field.ts';
import type { Html } from '../frame/html.ts';

const PERSONAL = { value: 'personal', title: 'You' };
const ENTERPRISE = { value: 'enterprise', title: 'Your enterprise' };

/** Who may own a new item: admins choose, members own it, and on one's own machine there is nobody else. */
export type OwnerChoice = 'any' | 'personal' | 'not_asked';

/** The owner of a new item. Only admins create and change items of the enterprise. */
export function ownerField(form: FormState, owners: OwnerChoice): Html {
  if (owners === 'not_asked') {
    return html`<input type="hidden" name="owner" value="${form.values['owner'] ?? PERSONAL.value}" />`;
  }
  const choices = owners === 'any' ? [PERSONAL, ENTERPRISE] : [PERSONAL];
  const hint =
    owners === 'any'
      ? 'Admins change what the enterprise owns; its members use it.'
      : 'Only admins create items that your enterprise owns.';
  return radioField(form, { name: 'owner', label: 'Owner', choices, hint });
}
