import { html } from 'hono/html';
import type {
  ConnectorRecord,
  ConnectorCredentialState,
  ConnectorSummary,
  ValidateReply,
} from '../../../shared/wire/connectors/connectors.ts';
import type { ReadList } from '../../kernel/read_all.ts';
import type { VaultUse } from '../../services/vault/credential_uses.ts';
import { alert, flash } from '../components/alert.ts';
import { arrangedList, byNewest, byText, type ListQuery } from '../components/arranged_list.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { textArea } from '../components/text_area.ts';
import { timeAgo } from '../components/time.ts';
import type { OperationMatches, SpecMatches } from '../../../shared/explain/spec_matches.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type OwnerChoice, ownerField } from '../bindings/owner_field.ts';
import { LAST_USED_NOTE, lastUsedWords } from '../bindings/use_words.ts';
import { RULE_FIELDS, ruleEditor } from './rule_fields.ts';
import type { SpecProblem } from '../../services/connectors/read_spec_text.ts';
import { tag } from '../components/tag.ts';
import { counted } from '../../../shared/model/sentence.ts';

export const CONNECTORS_PAGE = { path: '/connectors', title: 'Connectors' };
/** Shown in the empty field. */
const SPEC_EXAMPLE = `schema_version: 1
connector:
  fqn: me/items
  version: 1.0.0
  title: Items
  description: The items of our shop
hosts: [api.example.com]
credential:
  kind: api_key
operations:
  - name: list-items
    method: GET
    path: /items
    summary: List the items
    effect: read`;

const SPEC_SCHEMA = '/schemas/connector-spec-1.json';

/** The label and severity of a credential's state. */
const STATES: { readonly [S in ConnectorCredentialState]: readonly [BadgeKind, string] } = {
  ready: ['good', 'ready'],
  missing: ['warn', 'no credential'],
  authorisation_required: ['warn', 'not authorised'],
  reauthorisation_required: ['bad', 'authorise again'],
};

export function credentialBadge(state: ConnectorCredentialState): Html {
  const [kind, word] = STATES[state];
  return badge(kind, word);
}

/** Whether requests are compared with its operations. */
export function activeBadge({ active }: Pick<ConnectorSummary, 'active'>): Html {
  return active ? badge('good', 'active') : badge('warn', 'inactive');
}

interface ConnectorsView {
  readonly connectors: ReadList<ConnectorSummary>;
  readonly query: ListQuery;
  readonly use: VaultUse;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The installed connectors and the state of their credentials. */
export function connectorsPage(view: ConnectorsView): Page {
  const { connectors, query, use, done } = view;
  const list = arrangedList<ConnectorSummary>({
    kind: {
      path: '/connectors',
      words: ['connector', 'connectors'],
      placeholder: 'a name, a host …',
      textOf: ({ title, fqn, hosts, owner, active, credential }) =>
        [title, fqn, ...hosts, owner, active ? 'active' : 'inactive', STATES[credential.state][1]].join(' '),
      orders: [
        { name: 'name', title: 'By name', compare: byText(({ fqn, owner }) => `${fqn} ${owner}`) },
        { name: 'used', title: 'Last used first', compare: byNewest((connector) => use.lastFetchBy(connector)) },
        { name: 'changed', title: 'Last changed first', compare: byNewest(({ updated_at: updated }) => updated) },
      ],
    },
    query,
    ...connectors,
    table: (shown) => table(view, shown),
    none: noConnectors(),
  });
  const content = html`${pageHeader({
    title: 'Connectors',
    lead: 'A connector lists operations of a service: only those are sent with its credential.',
    actions: html`<a class="button" href="/connectors/install">Install a connector</a>
      <a class="button primary" href="/services">Connect a service</a>`,
  })}
  ${flash(done)} ${list} ${connectors.items.length === 0 ? '' : LAST_USED_NOTE}`;
  return layout('Connectors', content);
}

function noConnectors(): Html {
  return emptyState({
    title: 'No connector is installed',
    next: 'Connect a service of the catalog, or describe an API in a spec of your own.',
    action: html`<a class="button primary" href="/services">Connect a service</a>
      <a class="button" href="/connectors/install">Install a spec</a>`,
  });
}

function table({ use, nowMs }: ConnectorsView, connectors: readonly ConnectorSummary[]): Html {
  return dataTable<ConnectorSummary>({
    caption: 'Connectors',
    rows: connectors,
    key: ({ id }) => id,
    columns: [
      {
        title: 'Connector',
        cell: ({ id, title, fqn, version }) =>
          html`<a href="/connectors/${id}" data-result>${foreignText(title)}</a>
            <span class="sub mono">${fqn} ${version}</span>`,
      },
      {
        title: 'State',
        cell: ({ active, credential }) => html`${activeBadge({ active })} ${credentialBadge(credential.state)}`,
      },
      {
        title: 'Hosts',
        cell: ({ hosts, operation_count: count }) =>
          html`<code>${hosts.join(', ')}</code> <span class="sub">${counted(count, 'operation')}</span>`,
      },
      { title: 'Last used', cell: (connector) => lastUsedWords(use.lastFetchBy(connector), nowMs) },
      { title: 'Owner', cell: ({ owner }) => tag(owner), isHostedOnly: true },
      { title: 'Changed', cell: ({ updated_at: updated }) => timeAgo(updated, nowMs) },
    ],
  });
}

export interface InstallView {
  readonly form: FormState;
  /** Whether the user may create one for the enterprise. */
  readonly owners: OwnerChoice;
  /** The problems, each with its place in the spec. */
  readonly specProblems: readonly SpecProblem[];
  /** The result of checking a valid spec. */
  readonly checked: CheckedSpec | null;
  /** The installed connector whose spec is changed; null for a new one. */
  readonly changed: Pick<ConnectorRecord, 'id' | 'fqn' | 'owner'> | null;
  /** The spec that somebody else installed while the user changed an older one; null if nobody did. */
  readonly installedMeanwhile: string | null;
}

/** A valid spec, and which of the newest requests its operations would have matched. */
export interface CheckedSpec {
  readonly reply: ValidateReply;
  readonly matches: SpecMatches;
}

/** The form for a spec. */
export function installPage(view: InstallView): Page {
  const { form, owners, specProblems, checked, changed, installedMeanwhile } = view;
  const title = changed === null ? 'Install a connector' : 'Change the spec';
  const above = changed === null ? CONNECTORS_PAGE : { path: `/connectors/${changed.id}`, title: changed.fqn };
  const content = html`${pageHeader({
      title,
      above,
      lead:
        changed === null
          ? 'Installing another version replaces the installed spec and keeps its credential.'
          : html`Give the changed spec another version. Installing it replaces the spec of
              <span class="mono">${changed.fqn}</span>, ${changed.owner}, and keeps its credential.`,
    })}
    ${formRefusal(form, ['owner', 'spec', ...RULE_FIELDS])}
    ${installedMeanwhile === null ? '' : conflictAlert(installedMeanwhile)}
    ${specProblems.length === 0 ? '' : problemList(specProblems)} ${checked === null ? '' : specSummary(checked)}
    <form class="panel stack" method="post" action="/connectors">
      ${textArea(form, {
        name: 'spec',
        label: 'Connector spec',
        hint: html`YAML or JSON, as the <a href="${SPEC_SCHEMA}">JSON Schema</a> says. For a service of the catalog,
          <a href="/services">connect it</a> instead.`,
        placeholder: SPEC_EXAMPLE,
        rows: 18,
        isRequired: true,
        isMono: true,
      })}
      ${changed === null ? ownerField(form, owners) : ''}
      <div class="actions">
        <button class="primary" name="step" value="install">
          ${installedMeanwhile === null ? 'Install' : 'Install mine in its place'}
        </button>
        <button name="step" value="check">Check only</button>
        <a class="button" href="${above.path}">Cancel</a>
      </div>
      <input type="hidden" name="from" value="${changed?.id ?? ''}" />
      <input type="hidden" name="read" value="${form.values['read'] ?? ''}" />
      ${ruleEditor(form, checked?.matches.operations.map(({ operation }) => operation) ?? [])}
    </form>`;
  return layout(title, content, 'narrow');
}

function conflictAlert(spec: string): Html {
  return html`${alert(
      'bad',
      html`<p>
        <strong>Nothing was installed: the connector was changed meanwhile.</strong> Somebody installed another version
        after you opened the form. Take over from it what you need, and install your text in its place.
      </p>`,
    )}
    <details class="more" open>
      <summary>The spec that is installed now</summary>
      <div class="code">
        <pre><code>${foreignText(spec)}</code></pre>
      </div>
    </details>`;
}

function problemList(problems: readonly SpecProblem[]): Html {
  return alert(
    'bad',
    html`<p><strong>Nothing was installed.</strong> Problems in the spec:</p>
      <ul>
        ${problems.map(
          ({ field, message, line }) =>
            html`<li>
              ${line === null ? '' : html`Line ${line}:`}
              ${field === '' ? 'the spec' : html`<code>${foreignText(field)}</code>`} ${foreignText(message)}
            </li>`,
        )}
      </ul>`,
  );
}

function specSummary({ reply, matches }: CheckedSpec): Html {
  const { fqn, version, operation_count: count, content_hash: hash, warnings } = reply;
  return html`${alert('good', 'The spec is valid. Nothing was changed.')}
    <div class="panel">
      ${definitionList([
        ['Connector', html`<code>${fqn}</code>`],
        ['Version', version],
        ['Operations', String(count)],
        ['SHA-256 of the spec', html`<code>${hash}</code>`],
      ])}
    </div>
    ${matchesPanel(matches)} ${warningList(warnings)}`;
}

/** Tries the spec on what agents did, before it is in force. */
function matchesPanel({ operations, others, looked }: SpecMatches): Html {
  const rows = [...operations, ...(others.count > 0 ? [others] : [])];
  return html`<section class="panel flush" aria-labelledby="matches-title">
    <div class="panel-head">
      <h2 id="matches-title">What it would have matched</h2>
      <span class="quiet small"
        >${looked === 0 ? 'no recent request to its hosts' : `of the newest ${looked} requests to its hosts`}</span
      >
    </div>
    ${dataTable<OperationMatches>({
      caption: 'What it would have matched',
      rows,
      columns: [
        {
          title: 'Operation',
          cell: ({ operation, byBody }) =>
            operation === ''
              ? html`<em>none</em> <span class="sub">no credential from this connector</span>`
              : html`<code>${foreignText(operation)}</code>
                  ${byBody ? html`<span class="sub">if the body fits</span>` : ''}`,
        },
        { title: 'Requests', cell: ({ count }) => String(count) },
        {
          title: 'Such as',
          cell: ({ examples }) =>
            html`${examples.map((each) => html`<span class="sub mono">${foreignText(each)}</span>`)}`,
        },
      ],
    })}
  </section>`;
}

/** Warnings about what a spec allows. */
export function warningList(warnings: readonly string[]): Html | string {
  if (warnings.length === 0) return '';
  return alert(
    'warn',
    html`<p><strong>Warnings</strong></p>
      <ul>
        ${warnings.map((warning) => html`<li>${foreignText(warning)}</li>`)}
      </ul>`,
  );
}
