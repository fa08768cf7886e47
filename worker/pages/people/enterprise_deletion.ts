import { html } from 'hono/html';
import type { DeletionReply } from '../../../shared/wire/enterprise.ts';
import { departureText } from '../../../shared/wire/members.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { FormState } from '../components/form_field.ts';
import type { Page } from '../frame/layout.ts';

/** An enterprise that its owner wants to delete, and what goes with it. */
export interface DeletedEnterprise {
  readonly name: string;
  readonly slug: string;
  readonly deletion: DeletionReply;
}

/** Asks for the enterprise's slug. */
export function deletionPage({ name, slug, deletion }: DeletedEnterprise, form: FormState): Page {
  const { members, ...departing } = deletion;
  return confirmPage({
    title: 'Delete the enterprise?',
    consequence: html`<strong>${foreignText(name)}</strong> is deleted for good, with all that it and its members own,
      and everybody is signed out of it at once. Members: ${members}. Deleted or revoked: ${departureText(departing)}.
      Nothing brings it back, so run <code data-command>svc export</code> first;
      <code data-command>svc enterprise delete</code> does both.`,
    name: slug,
    action: '/enterprise/delete',
    button: 'Delete',
    hidden: {},
    above: { path: '/enterprise', title: 'Enterprise' },
    form,
  });
}
