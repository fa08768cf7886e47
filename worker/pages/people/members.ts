import { html } from 'hono/html';
import { ROLES } from '../../../shared/model/role.ts';
import { type DepartureReply, departureText, type MemberRecord } from '../../../shared/wire/members.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { MemberChanges } from '../../services/people/members.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, radioField, revisionField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { PAGE_WORDS, pager } from '../components/pager.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { tag } from '../components/tag.ts';

const ABOVE = { path: '/members', title: 'Members' };

interface MembersView {
  readonly members: ListPage<MemberRecord>;
  readonly callerId: string;
  readonly isLocal: boolean;
  readonly mayChange: (member: MemberRecord) => MemberChanges;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The people of the enterprise. */
export function membersPage(view: MembersView): Page {
  const { members, cursor, done, isLocal } = view;
  const content = html`${pageHeader({
      title: 'Members',
      lead: 'Everybody with an account in your enterprise. Owners appoint admins and owners; admins manage members. People join by an invitation, or by signing in with a verified address of your provider’s domains.',
      actions: html`<a class="button" href="/enterprise">Settings</a>
        ${isLocal ? '' : html`<a class="button" href="/members/requests">Requests to join</a> <a class="button" href="/members/invitations">Invitations</a> <a class="button primary" href="/members/invite">Invite</a>`}`,
    })}
    ${flash(done)}
    ${isLocal ? alert('info', 'This control plane is on your own machine: you are its only member, and nobody else can sign in.') : ''}
    <div class="panel flush">${table(view)}</div>
    ${pager('/members', { cursor }, members.next_cursor, PAGE_WORDS)}`;
  return layout('Members', content);
}

/** Shown instead of the list to users who may not see it. */
export function membersRefusedPage(message: string): Page {
  const content = html`${pageHeader({ title: 'Members' })} ${alert('info', html`<p>${message}.</p>`)}`;
  return layout('Members', content);
}

function table({ members, callerId, mayChange, nowMs }: MembersView): Html {
  return dataTable<MemberRecord>({
    caption: 'Members',
    rows: members.items,
    columns: [
      {
        title: 'Member',
        cell: ({ id, display_name: name, email }) =>
          html`<strong>${foreignText(name)}</strong> ${id === callerId ? tag('you') : ''}
            ${email === null ? '' : html`<span class="sub">${foreignText(email)}</span>`}`,
      },
      { title: 'Role', cell: ({ role }) => badge(role === 'member' ? 'plain' : 'accent', role) },
      { title: 'State', cell: stateBadge },
      { title: 'Joined', cell: ({ created_at: created }) => timeAgo(created, nowMs) },
      {
        title: 'Change',
        isActions: true,
        cell: (member) => memberLink(member, mayChange(member)),
      },
    ],
  });
}

function memberLink({ id, display_name: name }: MemberRecord, may: MemberChanges): Html {
  const word = may.role || may.suspension ? 'Change' : 'Look at';
  return html`<a class="button compact" href="/members/${id}">${word}<span class="hidden-but-read"> ${name}</span></a>`;
}

function stateBadge({ suspended_at: suspended }: MemberRecord): Html {
  return suspended === null ? badge('good', 'active') : badge('bad', 'suspended');
}

/** One member: its role and state, and what the user may change. */
export function memberPage(member: MemberRecord, may: MemberChanges, form: FormState): Page {
  const { id, display_name: name, email, role } = member;
  const content = html`${pageHeader({ title: foreignText(name), above: ABOVE })} ${formRefusal(form, ['role'])}
    <div class="panel">
      ${definitionList([
        ['Email', email === null ? null : foreignText(email)],
        ['Role', tag(role)],
        ['State', stateBadge(member)],
        ['Joined', writtenTime(member.created_at)],
        ['Suspended', member.suspended_at === null ? null : writtenTime(member.suspended_at)],
        ['Id', html`<code>${id}</code>`],
      ])}
    </div>
    ${may.role ? roleForm(member, form) : ''}
    ${may.suspension ? (member.suspended_at === null ? suspension(id) : resumption(member)) : ''}
    ${may.suspension ? removalLink(id) : ''}
    ${may.role || may.suspension ? '' : html`<p class="quiet">Only an owner can change this member.</p>`}`;
  return layout(name, content, 'narrow');
}

function roleForm({ id, role, revision }: MemberRecord, form: FormState): Html {
  const values = { role, ...form.values };
  return html`<form class="panel stack" method="post" action="/members/${id}/role">
    ${revisionField(form.values['revision'] ?? revision)}
    ${radioField(
      { ...form, values },
      {
        name: 'role',
        label: 'Role',
        choices: ROLES.map((each) => ({ value: each, title: each })),
        hint: 'A member uses what is its own and the enterprise’s; an admin changes what the enterprise owns and its members; an owner also makes admins and owners.',
      },
    )}
    <div class="actions"><button class="primary">Change the role</button></div>
  </form>`;
}

function suspension(id: string): Html {
  return html`<section class="panel" aria-labelledby="suspension-title">
    <h2 id="suspension-title">Suspend</h2>
    <p>
      Signs the member out everywhere, and ends its sidecars, personal tokens and grants for good. You can resume it
      later.
    </p>
    <div class="actions"><a class="button danger" href="/members/${id}/suspend">Suspend</a></div>
  </section>`;
}

function removalLink(id: string): Html {
  return html`<section class="panel" aria-labelledby="removal-title">
    <h2 id="removal-title">Remove</h2>
    <p>Deletes what is the member’s own. The next page says how much that is.</p>
    <div class="actions"><a class="button danger" href="/members/${id}/remove">Remove</a></div>
  </section>`;
}

function resumption({ id, revision }: MemberRecord): Html {
  return html`<section class="panel" aria-labelledby="suspension-title">
    <h2 id="suspension-title">Suspended</h2>
    <p>After resuming, the member must sign in, enrol its sidecars and create its tokens again.</p>
    <form class="actions" method="post" action="/members/${id}/resume">
      ${revisionField(revision)}<button>Resume</button>
    </form>
  </section>`;
}

/** The text to type to suspend a member. */
export function nameOfMember({ email, id }: MemberRecord): string {
  return email ?? id;
}

export function suspensionPage(member: MemberRecord, form: FormState): Page {
  const { id, display_name: name } = member;
  const isSuspended = member.suspended_at !== null;
  return confirmPage({
    title: 'Suspend a member?',
    consequence: isSuspended
      ? html`<strong>${foreignText(name)}</strong> is suspended already.`
      : html`<strong>${foreignText(name)}</strong> is signed out everywhere at once, and their sidecars, personal tokens
          and grants end for good.`,
    name: nameOfMember(member),
    action: `/members/${id}/suspend`,
    button: 'Suspend',
    keep: 'Cancel',
    hidden: {},
    above: { path: `/members/${id}`, title: name },
    form,
    isNeedless: isSuspended,
  });
}

/** A member, and what would leave with it. */
export interface Leaver {
  readonly member: MemberRecord;
  readonly departure: DepartureReply;
}

export function removalPage({ member, departure }: Leaver, form: FormState): Page {
  const { id, display_name: name } = member;
  return confirmPage({
    title: 'Remove a member?',
    consequence: html`<strong>${foreignText(name)}</strong> is signed out everywhere at once. Deleted or revoked:
      ${departureText(departure)}. Only an invitation lets the person in again.`,
    name: nameOfMember(member),
    action: `/members/${id}/remove`,
    button: 'Remove',
    keep: 'Cancel',
    hidden: {},
    above: { path: `/members/${id}`, title: name },
    form,
  });
}

/** Asks who wants to leave for the enterprise's name. */
export function leavingPage(enterprise: string, departure: DepartureReply, form: FormState): Page {
  return confirmPage({
    title: 'Leave the enterprise?',
    consequence: html`You leave <strong>${foreignText(enterprise)}</strong>, and are signed out of it everywhere.
      Deleted or revoked: ${departureText(departure)}. Only an invitation lets you in again.`,
    name: enterprise,
    action: '/enterprises/leave',
    button: 'Leave',
    keep: 'Cancel',
    hidden: {},
    above: { path: '/enterprises', title: 'Your enterprises' },
    form,
  });
}
