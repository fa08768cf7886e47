import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { CredentialUse } from '../../services/vault/credential_uses.ts';
import { html } from 'hono/html';
import { graphqlWords } from '../../../shared/connect/graphql_operation.ts';
import type { Effect } from '../../../shared/model/host_binding.ts';
import type { ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import { alert, flash } from '../components/alert.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { useLink } from '../bindings/use_words.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { FormState } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import { type ConnectorView, credentialPanel, isShared } from './connector_credential.ts';
import { activeBadge, CONNECTORS_PAGE, warningList } from './connectors.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

type SpecOperation = ConnectorRecord['spec']['operations'][number];

const EFFECT_BADGES: { readonly [E in Effect]: BadgeKind } = {
  read: 'plain',
  write: 'accent',
  delete: 'warn',
  spend: 'warn',
  'external-send': 'warn',
};

/** One connector: its credential and its operations. */
export function connectorPage(view: ConnectorView): Page {
  const { connector, warnings, isWritable, done, nowMs } = view;
  const { id, spec } = connector;
  const content = html`${pageHeader({
      title: foreignText(connector.title),
      lead: spec.connector.description === '' ? '' : foreignText(spec.connector.description),
      above: CONNECTORS_PAGE,
      actions: isWritable ? html`<a class="button danger" href="/connectors/${id}/remove">Remove</a>` : '',
    })}
    ${flash(done)} ${connector.active ? '' : inactiveAlert()} ${warningList(warnings)}
    <div class="columns">${factsPanel(connector, nowMs)} ${credentialPanel(view)}</div>
    <section class="panel flush" aria-labelledby="operations-title">
      <div class="panel-head">
        <h2 id="operations-title">Operations</h2>
        <span class="quiet small">Other requests get no credential</span>
      </div>
      ${operations(connector)}
    </section>
    <details class="more">
      <summary>The installed spec</summary>
      <div class="code">
        <pre><code>${foreignText(JSON.stringify(spec, null, 2))}</code></pre>
      </div>
    </details>`;
  return layout(connector.title, content);
}

function inactiveAlert(): Html {
  return alert(
    'warn',
    'This connector is inactive: it has no credential yet, so it changes nothing. Requests take the path that they take without it.',
  );
}

function factsPanel(connector: ConnectorRecord, nowMs: number): Html {
  return html`<section class="panel" aria-labelledby="facts-title">
    <h2 id="facts-title">Connector</h2>
    ${definitionList([
      ['Name', html`<code>${connector.fqn}</code>`],
      ['State', activeBadge(connector)],
      ['Version', connector.version],
      ['Hosts', html`<code>${connector.hosts.join(', ')}</code>`],
      ['Owner', connector.owner],
      ['Installed', timeAgo(connector.updated_at, nowMs)],
      ['By', html`<code>${connector.installed_by}</code>`],
      ['Content', html`<code>${connector.content_hash}</code>`],
      ['Id', html`<code>${connector.id}</code>`],
    ])}
  </section>`;
}

function operations({ spec }: ConnectorRecord): Html {
  return dataTable<SpecOperation>({
    caption: 'Operations',
    rows: spec.operations,
    columns: [
      {
        title: 'Operation',
        cell: ({ name, summary }) =>
          html`<code>${foreignText(name)}</code>
            ${summary === '' ? '' : html`<span class="sub">${foreignText(summary)}</span>`}`,
      },
      {
        title: 'Request',
        cell: ({ method, path, hosts, graphql }) =>
          html`<code>${method} ${foreignText(path)}</code>
            ${graphql === undefined ? '' : html`<span class="sub">GraphQL: ${foreignText(graphqlWords(graphql))}</span>`}
            ${hosts === undefined ? '' : html`<span class="sub">only at ${hosts.join(', ')}</span>`}`,
      },
      { title: 'Effect', cell: ({ effect }) => badge(EFFECT_BADGES[effect], effect) },
      {
        title: 'Approval',
        cell: ({ approval }) =>
          approval === 'required' ? badge('warn', 'by a person') : html`<span class="quiet">not needed</span>`,
      },
      {
        title: 'Inputs',
        cell: ({ inputs }) =>
          html`${inputs.map(
            ({ name, required: isRequired }, index) =>
              html`${index === 0 ? '' : ', '}<code>${foreignText(name)}</code>${isRequired ? '' : html`<span class="quiet"> (optional)</span>`}`,
          )}`,
      },
    ],
  });
}

/** A connector to remove, and the bindings that this changes. */
export interface ConnectorToRemove {
  readonly connector: ConnectorRecord;
  /** Those that use its credential. */
  readonly users: readonly CredentialUse[];
  /** Those of its hosts: they apply without it. */
  readonly onHosts: readonly Pick<HostBindingRecord, 'id' | 'host'>[];
}

export function connectorRemovalPage({ connector, users, onHosts }: ConnectorToRemove, form: FormState): Page {
  const { id, fqn, hosts, credential } = connector;
  const next = onHosts.map(({ id: bindingId, host }) => useLink({ kind: 'binding', id: bindingId, name: host }));
  return confirmPage({
    title: 'Remove a connector?',
    consequence: html`<code>${fqn}</code> ${isShared(credential) ? 'is' : 'and its credential are'} permanently deleted.
      Tokens are revoked at the provider first, if svc knows where. From then on requests to
      <code>${hosts.join(', ')}</code> get
      ${next.length === 0 ? 'no credential: no binding is for these hosts.' : html`the credential of ${next}.`}
      ${users.length === 0 ? '' : html`These use its credential, and their requests get status 503: ${users.map((use) => useLink(use))}.`}`,
    name: fqn,
    action: `/connectors/${id}/remove`,
    button: 'Remove it',
    hidden: {},
    above: { path: `/connectors/${id}`, title: fqn },
    form,
  });
}
