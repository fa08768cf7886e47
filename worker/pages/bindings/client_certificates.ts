import { html } from 'hono/html';
import type { ClientCertificateRecord } from '../../../shared/wire/hosts/client_certificates.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { flash } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { effectChoices } from './binding_form.ts';
import { referenceList } from './reference_words.ts';
import { tag } from '../components/tag.ts';

const TITLE = 'Client certificates';
const ABOVE = { path: '/client-certificates', title: TITLE };

interface ClientCertificatesView {
  readonly certificates: ListPage<ClientCertificateRecord>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** The user's secrets. */
  readonly references: readonly string[];
  readonly form: FormState;
}

/** The hosts that a certificate is presented to, and the form for another one. */
export function clientCertificatesPage(view: ClientCertificatesView): Page {
  const { certificates, cursor, done, form, references } = view;
  const content = html`${pageHeader({
      title: TITLE,
      lead: 'Hosts that ask for a certificate get it from the proxy, after the decision about a request. An agent never has its key.',
    })}
    ${flash(done)}
    <div class="panel flush">${certificates.items.length === 0 ? noCertificates() : table(view)}</div>
    ${pager('/client-certificates', { cursor }, certificates.next_cursor)}
    ${formRefusal(form, ['host', 'credential_ref', 'effect', 'http2'])}
    <form class="panel stack" method="post" action="/client-certificates" aria-labelledby="add-title">
      <h2 id="add-title">Add a certificate</h2>
      ${textField(form, {
        name: 'host',
        label: 'Host',
        hint: 'One host, with :PORT for another port than 443; it replaces the certificate that the host has',
        placeholder: 'api.example.com',
        isRequired: true,
        isMono: true,
        maxLength: 255,
      })}
      ${textField(form, {
        name: 'credential_ref',
        label: 'Secret',
        hint: html`It has the certificates and their key as PEM. <code data-command>svc cert add</code> stores them from
          files, and checks that they match.`,
        placeholder: 'vault://user/client-certificate',
        isRequired: true,
        isMono: true,
        list: 'references',
      })}
      ${referenceList(references)}
      ${selectField(form, {
        name: 'effect',
        label: 'Effect',
        hint: 'Read allows only GET, HEAD and OPTIONS',
        choices: effectChoices(),
      })}
      ${selectField(form, {
        name: 'http2',
        label: 'For programs that offer both versions of HTTP',
        choices: [
          { value: '', title: 'HTTP/1.1' },
          { value: 'true', title: 'HTTP/2: the host has to speak it' },
        ],
      })}
      <div class="actions"><button class="primary">Add the certificate</button></div>
    </form>`;
  return layout(TITLE, content);
}

function noCertificates(): Html {
  return emptyState({
    title: 'No host gets a certificate',
    next: 'This command stores a certificate with its key, and presents it to a host:',
    command: 'svc cert add HOST --cert FILE --key FILE',
  });
}

function table({ certificates, nowMs }: ClientCertificatesView): Html {
  return dataTable<ClientCertificateRecord>({
    caption: TITLE,
    rows: certificates.items,
    columns: [
      { title: 'Host', cell: ({ host }) => html`<code>${host}</code>` },
      { title: 'Secret', cell: ({ credential_ref: reference }) => html`<code>${reference}</code>` },
      {
        title: 'Effect',
        cell: ({ effect }) => (effect === undefined ? 'Every method' : tag(effect)),
      },
      { title: 'HTTP', cell: ({ http2 }) => (http2 === true ? '2' : '1.1') },
      { title: 'Added', cell: ({ created_at: added }) => timeAgo(added, nowMs) },
      { title: 'Actions', isActions: true, cell: removal },
    ],
  });
}

function removal({ id, host }: ClientCertificateRecord): Html {
  return html`<div class="actions">
    <a class="button compact danger" href="/client-certificates/${id}/delete"
      >Remove<span class="hidden-but-read"> ${host}</span></a
    >
  </div>`;
}

export function clientCertificateRemovalPage({ id, host }: ClientCertificateRecord, form: FormState): Page {
  return confirmPage({
    title: 'Remove this certificate?',
    consequence: html`Its connections to <code>${host}</code> end, and new ones are opened without a certificate. The
      secret stays.`,
    name: host,
    action: `/client-certificates/${id}/delete`,
    button: 'Remove it',
    hidden: {},
    above: ABOVE,
    form,
  });
}
