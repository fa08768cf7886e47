import { html } from 'hono/html';
import type { Role } from '../../../shared/model/role.ts';
import type { MembershipRecord } from '../../../shared/wire/enterprise.ts';
import {
  type CreatedInvitation,
  type InvitationRecord,
  MAX_INVITATION_DAYS,
} from '../../../shared/wire/invitations.ts';
import type { JoinOffer } from '../../../shared/wire/people/join_requests.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, radioField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { PAGE_WORDS, pager } from '../components/pager.ts';
import { writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { joinOffersSection } from './join_requests.ts';
import { tag } from '../components/tag.ts';

const ABOVE = { path: '/members', title: 'Members' };
const LIST = '/members/invitations';

/** The form that invites an address. */
export function invitePage(roles: readonly Role[], form: FormState): Page {
  const content = html`${pageHeader({
      title: 'Invite somebody',
      above: ABOVE,
      lead: 'The link works once, for a person who has proven this address. It is mailed if this control plane sends mail.',
    })}
    ${formRefusal(form, ['email', 'role', 'expires_in_days'])}
    <form class="panel stack" method="post" action="/members/invite">
      ${textField(form, { name: 'email', label: 'Email', isRequired: true, maxLength: 254 })}
      ${radioField(form, { name: 'role', label: 'Role', choices: roles.map((role) => ({ value: role, title: role })) })}
      ${textField(form, { name: 'expires_in_days', label: 'Days until it ends', hint: `1 to ${MAX_INVITATION_DAYS}`, isRequired: true, maxLength: 2 })}
      <div class="actions"><button class="primary">Invite</button> <a class="button" href="/members">Cancel</a></div>
    </form>`;
  return layout('Invite somebody', content, 'narrow');
}

/** The only page that shows the link. */
export function invitedPage({ email, role, url, mailed, expires_at: expires }: CreatedInvitation): Page {
  const sent = mailed ? 'The link was mailed.' : 'No mail was sent: pass the link on yourself.';
  const content = html`${pageHeader({ title: 'Invited', above: ABOVE })}
    ${alert('warn', `${sent} No page and no reply shows it again: only its hash is stored.`)}
    <div class="panel">
      ${codeBlock(url)}
      ${definitionList([
        ['For', foreignText(email)],
        ['Role', tag(role)],
        ['Ends', writtenTime(expires)],
      ])}
      <div class="actions"><a class="button primary" href="${LIST}">I have it</a></div>
    </div>`;
  return layout('Invited', content, 'narrow');
}

interface InvitationsView {
  readonly invitations: ListPage<InvitationRecord>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
}

/** The invitations of the enterprise. */
export function invitationsPage({ invitations, cursor, done }: InvitationsView): Page {
  const content = html`${pageHeader({
      title: 'Invitations',
      above: ABOVE,
      lead: 'Those that ended are listed for 30 days.',
      actions: html`<a class="button primary" href="/members/invite">Invite</a>`,
    })}
    ${flash(done)}
    <div class="panel flush">${invitations.items.length === 0 ? nobody() : table(invitations.items)}</div>
    ${pager(LIST, { cursor }, invitations.next_cursor, PAGE_WORDS)}`;
  return layout('Invitations', content);
}

function nobody(): Html {
  return emptyState({ title: 'Nobody is invited', next: 'An invitation is for one address, and works once.' });
}

const STATE_KINDS = { open: 'accent', accepted: 'good', revoked: 'plain', expired: 'plain' } as const;

function table(rows: readonly InvitationRecord[]): Html {
  return dataTable<InvitationRecord>({
    caption: 'Invitations',
    rows,
    columns: [
      { title: 'For', cell: ({ email }) => foreignText(email) },
      { title: 'Role', cell: ({ role }) => badge(role === 'member' ? 'plain' : 'accent', role) },
      { title: 'State', cell: ({ state }) => badge(STATE_KINDS[state], state) },
      { title: 'Ends', cell: ({ expires_at: expires }) => writtenTime(expires) },
      { title: 'Change', isActions: true, cell: revocation },
    ],
  });
}

function revocation({ id, email, state }: InvitationRecord): Html | string {
  if (state !== 'open') return '';
  return html`<form method="post" action="${LIST}/${id}/revoke">
    <button class="compact danger">Revoke<span class="hidden-but-read"> the invitation of ${email}</span></button>
  </form>`;
}

interface AcceptView {
  readonly invitation: InvitationRecord;
  readonly inviter: string;
  readonly enterprise: string;
  /** The path of this page. */
  readonly path: string;
  readonly isSignedIn: boolean;
}

/** What the holder of a link is invited to, and the question. */
export function acceptPage({ invitation, inviter, enterprise, path, isSignedIn }: AcceptView): Page {
  const content = html`${pageHeader({ title: html`Join ${foreignText(enterprise)}?` })}
  ${definitionList([
    ['Invited by', foreignText(inviter)],
    ['Enterprise', foreignText(enterprise)],
    ['Role', tag(invitation.role)],
    ['For', foreignText(invitation.email)],
    ['Ends', writtenTime(invitation.expires_at)],
  ])}
  ${isSignedIn ? joinForm(path) : signInLink(path)}`;
  return layout('Join an enterprise?', content, 'card');
}

function joinForm(path: string): Html {
  return html`<p>You keep your other enterprises, and switch between them. What is yours there stays there.</p>
    <form method="post" action="${path}"><button class="primary wide">Join</button></form>`;
}

function signInLink(path: string): Html {
  return html`<p>Sign in first, in a way that proves this address. If you sign up, open this link again afterwards.</p>
    <a class="button primary wide" href="/sign-in?return_to=${encodeURIComponent(path)}">Sign in</a>`;
}

/** The enterprises of a person, with a button to switch to each. */
export function enterprisesPage({
  memberships,
  offers,
  done,
}: {
  readonly memberships: readonly MembershipRecord[];
  /** Those that the person may ask to join. */
  readonly offers: readonly JoinOffer[];
  readonly done: string | undefined;
}): Page {
  const content = html`${pageHeader({
      title: 'Your enterprises',
      lead: 'You act in one at a time. Programs and sidecars stay in the one where they signed in.',
    })}
    ${flash(done)}
    <div class="panel flush">
      ${dataTable<MembershipRecord>({
        caption: 'Enterprises',
        rows: memberships,
        columns: [
          { title: 'Enterprise', cell: ({ name }) => html`<strong>${foreignText(name)}</strong>` },
          { title: 'Role', cell: ({ role }) => badge(role === 'member' ? 'plain' : 'accent', role) },
          { title: 'Change', isActions: true, cell: membershipActions },
        ],
      })}
    </div>
    ${joinOffersSection(offers)}
    <p class="quiet small"><a href="/enterprises/leave">Leave the enterprise that you are in</a></p>`;
  return layout('Your enterprises', content, 'narrow');
}

function membershipActions({ id, name, role, current, suspended_at: suspended }: MembershipRecord): Html {
  if (current) return badge('good', 'you are here');
  if (suspended !== null) return badge('bad', 'suspended');
  const from = html`<span class="hidden-but-read"> from ${name}</span>`;
  return html`<form method="post" action="/enterprises/${id}/use" class="actions">
    <button class="compact">Switch<span class="hidden-but-read"> to ${name}</span></button>
    ${role === 'owner' ? html`<a class="button compact" href="/enterprises/${id}/merge">Move everything here${from}</a>` : ''}
  </form>`;
}
