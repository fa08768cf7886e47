import { html } from 'hono/html';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { TunnelHostRecord } from '../../../shared/wire/hosts/tunnel_hosts.ts';
import { flash } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type OwnerChoice, ownerField } from './owner_field.ts';
import { tag } from '../components/tag.ts';

const ABOVE = { path: '/tunnel-hosts', title: 'Tunnelled hosts' };

interface TunnelHostsView {
  readonly hosts: ListPage<TunnelHostRecord>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the user may change what the enterprise owns. */
  readonly isAdmin: boolean;
  readonly owners: OwnerChoice;
  readonly form: FormState;
}

/** The hosts that are not intercepted, and the form for another one. */
export function tunnelHostsPage(view: TunnelHostsView): Page {
  const { hosts, cursor, done, form, owners } = view;
  const content = html`${pageHeader({
      title: 'Tunnelled hosts',
      lead: 'Connections to these hosts are carried unread: for clients that accept only the host’s own certificate. The audit log has the host and byte counts.',
    })}
    ${flash(done)}
    <div class="panel flush">${hosts.items.length === 0 ? noHosts() : table(view)}</div>
    ${pager('/tunnel-hosts', { cursor }, hosts.next_cursor)} ${formRefusal(form, ['host', 'owner'])}
    <form class="panel stack" method="post" action="/tunnel-hosts" aria-labelledby="add-title">
      <h2 id="add-title">Add a host</h2>
      ${textField(form, {
        name: 'host',
        label: 'Host',
        hint: html`A host, or <code>*.example.com</code> for every host below it. Hosts with a binding or a connector
          are intercepted nevertheless.`,
        isRequired: true,
        isMono: true,
        maxLength: 255,
      })}
      ${ownerField(form, owners)}
      <div class="actions"><button class="primary">Carry its connections unread</button></div>
    </form>`;
  return layout('Tunnelled hosts', content);
}

function noHosts(): Html {
  return emptyState({
    title: 'Connections to every host are intercepted',
    next: 'If a program does not accept the certificate of svc, list its host below, or in a terminal:',
    command: 'svc tunnel add HOST',
  });
}

function table({ hosts, nowMs, isAdmin }: TunnelHostsView): Html {
  return dataTable<TunnelHostRecord>({
    caption: 'Tunnelled hosts',
    rows: hosts.items,
    columns: [
      { title: 'Host', cell: ({ host }) => html`<code>${host}</code>` },
      { title: 'Owner', cell: ({ owner }) => tag(owner), isHostedOnly: true },
      { title: 'Added', cell: ({ created_at: added }) => timeAgo(added, nowMs) },
      {
        title: 'Actions',
        isActions: true,
        cell: (entry) => (isAdmin || entry.owner === 'personal' ? removal(entry) : ''),
      },
    ],
  });
}

function removal({ id, host }: TunnelHostRecord): Html {
  return html`<div class="actions">
    <a class="button compact danger" href="/tunnel-hosts/${id}/delete"
      >Remove<span class="hidden-but-read"> ${host}</span></a
    >
  </div>`;
}

export function tunnelHostRemovalPage({ id, host }: TunnelHostRecord, form: FormState): Page {
  return confirmPage({
    title: 'Intercept this host again?',
    consequence: html`Open connections to <code>${host}</code> are closed, and clients that accept only its own
      certificate can no longer use it.`,
    name: host,
    action: `/tunnel-hosts/${id}/delete`,
    button: 'Remove it',
    hidden: {},
    above: ABOVE,
    form,
  });
}
