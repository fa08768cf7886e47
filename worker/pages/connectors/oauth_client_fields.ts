import { html } from 'hono/html';
import { type FormState, selectField, textField } from '../components/form_field.ts';
import type { Html } from '../frame/html.ts';

/** A client that authenticates with a private key (RFC 7523 section 2.2). */
export const SIGNING_CLIENT = {
  value: 'private_key_jwt',
  title: 'not at all: it is a private key in PEM (private_key_jwt)',
};

/** The secret of an OAuth client, and how it is sent to the provider (RFC 6749 section 2.3.1). */
export function clientSecretFields(form: FormState, more: readonly (typeof SIGNING_CLIENT)[] = []): Html {
  return html`${textField(form, { name: 'client_secret', label: 'Client secret (optional)', hint: 'A public client has none. No page shows it again.', isSecret: true, isMono: true })}
  ${selectField(form, {
    name: 'client_authentication',
    label: 'How the secret is sent',
    choices: [
      { value: 'post', title: 'in the body' },
      { value: 'basic', title: 'in an Authorization header' },
      ...more,
    ],
  })}`;
}
