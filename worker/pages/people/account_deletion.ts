import { html } from 'hono/html';
import type { AccountDeletionReply } from '../../../shared/wire/account.ts';
import { departureText } from '../../../shared/wire/members.ts';
import { confirmPage } from '../components/confirm_page.ts';
import type { FormState } from '../components/form_field.ts';
import type { Page } from '../frame/layout.ts';
import { ACCOUNT_PAGE } from './account.ts';

/** Asks for the user's address. */
export function accountDeletionPage(deletion: AccountDeletionReply, form: FormState): Page {
  const { confirm, deletes_enterprise: isAlone, ...departing } = deletion;
  return confirmPage({
    title: 'Delete your account?',
    consequence: html`Your account is deleted for good, with your ways to sign in, and you are signed out everywhere.
      ${isAlone ? 'Nobody else is in your enterprise: it is deleted too.' : 'You leave the enterprise.'} Deleted or
      revoked: ${departureText(departing)}. Nothing brings it back, so run <code data-command>svc export</code> first;
      <code data-command>svc account delete</code> does both.`,
    name: confirm,
    action: '/account/delete',
    button: 'Delete',
    hidden: {},
    above: ACCOUNT_PAGE,
    form,
  });
}
