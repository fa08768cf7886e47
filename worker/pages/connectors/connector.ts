import { html } from 'hono/html';
import { graphqlWords } from '../../../shared/connect/graphql_operation.ts';
import { jsonWords } from '../../../shared/connect/json_operation.ts';
import type { Effect } from '../../../shared/model/host_binding.ts';
import { toJsonRule } from '../../../shared/wire/connectors/connector_spec.ts';
import type { ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import { alert, flash } from '../components/alert.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { removalEffects, type RemovalView } from '../bindings/removal_effects.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { FormState } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import { type ConnectorView, credentialPanel } from './connector_credential.ts';
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
  const { connector, warnings, isWritable, done } = view;
  const { id, spec } = connector;
  const content = html`${pageHeader({
      title: foreignText(connector.title),
      lead: spec.connector.description === '' ? '' : foreignText(spec.connector.description),
      above: CONNECTORS_PAGE,
      actions: isWritable
        ? html`<a class="button" href="/connectors/install?from=${id}">Change the spec</a>
            <a class="button danger" href="/connectors/${id}/remove">Remove</a>`
        : '',
    })}
    ${flash(done)} ${connector.active ? '' : inactiveAlert()} ${warningList(warnings)}
    <div class="columns">${factsPanel(view)} ${credentialPanel(view)}</div>
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

function factsPanel({ connector, nameOf, nowMs }: ConnectorView): Html {
  const { installed_by: by } = connector;
  return html`<section class="panel" aria-labelledby="facts-title">
    <h2 id="facts-title">Connector</h2>
    ${definitionList([
      ['Name', html`<code>${connector.fqn}</code>`],
      ['State', activeBadge(connector)],
      ['Version', connector.version],
      ['Hosts', html`<code>${connector.hosts.join(', ')}</code>`],
      ['Owner', connector.owner, 'hosted-only'],
      ['Installed', timeAgo(connector.updated_at, nowMs)],
      ['By', html`<span title="${by}">${foreignText(nameOf(by) ?? by)}</span>`, 'hosted-only'],
      ['SHA-256 of the spec', html`<code>${connector.content_hash}</code>`],
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
        cell: ({ method, path, hosts, graphql, json }) =>
          html`<code>${method} ${foreignText(path)}</code>
            ${graphql === undefined ? '' : html`<span class="sub">GraphQL: ${foreignText(graphqlWords(graphql))}</span>`}
            ${json === undefined ? '' : html`<span class="sub">JSON: ${foreignText(jsonWords(json.map(toJsonRule)))}</span>`}
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

export function connectorRemovalPage(
  { id, preview, nowMs }: RemovalView & { readonly id: string },
  form: FormState,
): Page {
  const { name: fqn } = preview;
  return confirmPage({
    title: 'Remove a connector?',
    consequence: html`This removes <code>${fqn}</code>.`,
    effects: removalEffects(preview, nowMs),
    name: fqn,
    action: `/connectors/${id}/remove`,
    button: 'Remove it',
    hidden: {},
    above: { path: `/connectors/${id}`, title: fqn },
    form,
  });
}
