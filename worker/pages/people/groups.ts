import { html } from 'hono/html';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { type GroupMember, type GroupRecord, MAX_GROUP_NAME } from '../../../shared/wire/sharing/groups.ts';
import { alert, flash } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import {
  type Choice,
  type FormState,
  formRefusal,
  revisionField,
  selectField,
  textField,
} from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { PAGE_WORDS, pager } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

const ABOVE = { path: '/groups', title: 'Groups' };

interface GroupsView {
  readonly groups: ListPage<GroupRecord>;
  readonly mayManage: boolean;
  readonly form: FormState;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The groups of the enterprise. */
export function groupsPage({ groups, mayManage, form, cursor, done, nowMs }: GroupsView): Page {
  const content = html`${pageHeader({
      title: 'Groups',
      lead: 'To share things with several people at once. Everybody in the enterprise sees the groups; admins change them.',
    })}
    ${flash(done)}
    <div class="panel flush">
      ${
        groups.items.length === 0
          ? emptyState({
              title: 'No groups',
              next: mayManage ? 'Create the first one below.' : 'An admin creates them.',
            })
          : dataTable<GroupRecord>({
              caption: 'Groups',
              rows: groups.items,
              columns: [
                { title: 'Group', cell: ({ id, name }) => html`<a href="/groups/${id}">${foreignText(name)}</a>` },
                {
                  title: 'Managed by',
                  cell: ({ managed_by: by }) => (by === null ? 'admins' : 'your directory (SCIM)'),
                },
                { title: 'People', cell: ({ members }) => String(members) },
                { title: 'Created', cell: ({ created_at: created }) => timeAgo(created, nowMs) },
              ],
            })
      }
    </div>
    ${pager('/groups', { cursor }, groups.next_cursor, PAGE_WORDS)} ${mayManage ? newGroupForm(form) : ''}`;
  return layout('Groups', content);
}

function newGroupForm(form: FormState): Html {
  return html`<form class="panel stack" method="post" action="/groups" aria-label="New group">
    ${formRefusal(form, ['name'])}
    ${textField(form, { name: 'name', label: 'Name of a new group', isRequired: true, maxLength: MAX_GROUP_NAME })}
    <div class="actions"><button class="primary">Create</button></div>
  </form>`;
}

interface GroupView {
  readonly group: GroupRecord;
  readonly people: ListPage<GroupMember>;
  /** Members of the enterprise who are not in the group; empty for callers who may not change it. */
  readonly others: readonly Choice[];
  readonly mayManage: boolean;
  readonly form: FormState;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
}

/** One group: its people, and for admins what changes it. */
export function groupPage({ group, people, others, mayManage: isManager, form, cursor, done }: GroupView): Page {
  const { id, name, managed_by: by } = group;
  const mayManage = isManager && by === null;
  const content = html`${pageHeader({
      title: foreignText(name),
      above: ABOVE,
      actions: mayManage ? html`<a class="button danger" href="/groups/${id}/delete">Delete</a>` : '',
    })}
    ${flash(done)} ${by === null ? '' : alert('info', 'Your directory manages this group by SCIM: change it there.')}
    <div class="panel flush">
      ${
        people.items.length === 0
          ? emptyState({ title: 'Nobody is in this group', next: 'What is shared with it reaches nobody.' })
          : dataTable<GroupMember>({
              caption: 'People in the group',
              rows: people.items,
              columns: [
                { title: 'Person', cell: (person) => foreignText(person.display_name) },
                { title: 'Change', isActions: true, cell: (person) => (mayManage ? takeOut(id, person) : '') },
              ],
            })
      }
    </div>
    ${pager(`/groups/${id}`, { cursor }, people.next_cursor, PAGE_WORDS)}
    ${mayManage ? html`${additionForm(id, others, form)} ${renamingForm(group, form)}` : ''}`;
  return layout(name, content, 'narrow');
}

function takeOut(groupId: string, { id, display_name: name }: GroupMember): Html {
  return html`<form method="post" action="/groups/${groupId}/members/${id}/remove">
    <button class="compact danger">Take out<span class="hidden-but-read"> ${name}</span></button>
  </form>`;
}

function additionForm(id: string, others: readonly Choice[], form: FormState): Html | string {
  if (others.length === 0) return '';
  return html`<form class="panel stack" method="post" action="/groups/${id}/members" aria-label="Add somebody">
    ${selectField(form, { name: 'user', label: 'Member of the enterprise', choices: others })}
    <div class="actions"><button class="primary">Add</button></div>
  </form>`;
}

function renamingForm({ id, name, revision }: GroupRecord, form: FormState): Html {
  const values = { name, ...form.values };
  return html`<form class="panel stack" method="post" action="/groups/${id}/rename" aria-label="Rename">
    ${revisionField(form.values['revision'] ?? revision)} ${formRefusal(form, ['name', 'user'])}
    ${textField({ ...form, values }, { name: 'name', label: 'Name', isRequired: true, maxLength: MAX_GROUP_NAME })}
    <div class="actions"><button>Rename</button></div>
  </form>`;
}

/** Asks for the name of a group that somebody wants to delete. */
export function groupDeletionPage({ id, name, members }: GroupRecord, form: FormState): Page {
  return confirmPage({
    title: 'Delete a group?',
    consequence: html`What is shared with <strong>${foreignText(name)}</strong> no longer reaches
      ${members === 1 ? 'the one person' : html`the ${String(members)} people`} in it, who stay in the enterprise.`,
    name,
    action: `/groups/${id}/delete`,
    button: 'Delete',
    hidden: {},
    above: { path: `/groups/${id}`, title: name },
    form,
  });
}
