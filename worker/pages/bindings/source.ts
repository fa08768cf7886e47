import { TESTED_LEFT } from '../../../shared/wire/sources/tested_left.ts';
import { html } from 'hono/html';
import { mcpCredentialAt } from '../../../shared/model/mcp_server.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import type { SourcePlan, SourceRecord, SourceTested } from '../../../shared/wire/secret_sources.ts';
import { fieldText } from '../../../shared/wire/sources/field_form.ts';
import { fieldsOf, SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import type { CredentialUse } from '../../services/vault/credential_uses.ts';
import { alert, flash } from '../components/alert.ts';
import { codeBlock } from '../components/code_block.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { lastUsedWords, useLink } from './use_words.ts';

/** What a provider said when it was asked for a value that nobody gets. */
export type TestedSource = SourceTested | { readonly refusal: string };

interface SourceView {
  readonly record: SourceRecord;
  readonly users: readonly CredentialUse[];
  readonly lastUse: string | null;
  readonly plan: SourcePlan | null;
  readonly tested: TestedSource | null;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the user may change it. */
  readonly mayChange: boolean;
}

/** A minted secret: what mints it, what is held now, and what failed last. */
export function sourcePage(view: SourceView): Page {
  const { record, plan, tested, done, mayChange } = view;
  const { path, owner, ref, source, description } = record;
  const at = { path, owner };
  const place = placeOf(path);
  const isBorrowed = source.kind === BORROWED_KIND;
  const content = html`${pageHeader({
    title: html`<span class="mono">${ref}</span>`,
    above: place,
    lead: description === null ? SOURCE_TABLE[source.kind].lead : foreignText(description),
    actions: mayChange
      ? html`${isBorrowed ? '' : changeLink(source.kind, at)}
          <a class="button danger" href="${place.deletion ?? pathWith('/secrets/delete', at)}">Delete</a>`
      : '',
  })}
  ${flash(done)} ${tested === null ? '' : testedAlert(tested)} ${plan === null ? '' : planPanel(plan)}
  ${stateSection(view)} ${fieldsSection(record)} ${mayChange && !isBorrowed ? trySection(record) : ''}`;
  return layout(ref, content, 'narrow');
}

interface SourcePlace {
  /** The page above, with its title. */
  readonly path: string;
  readonly title: string;
  /** Where it is deleted, if not as a secret. */
  readonly deletion: string | null;
}

/** A credential of an MCP server belongs to the page of that server, every other secret to the list of secrets. */
export function placeOf(path: string): SourcePlace {
  const credential = mcpCredentialAt(path);
  if (credential === null) return { path: '/secrets', title: 'Secrets', deletion: null };
  const server = `/mcp-servers/${credential.serverId}`;
  return { path: server, title: 'MCP server', deletion: `${server}/credentials/delete?name=${credential.name}` };
}

function noneHeld({ source }: SourceRecord): string {
  return source.kind === BORROWED_KIND
    ? 'not here, but on the machine that uses it'
    : 'none; it is minted when a request needs it';
}

function changeLink(kind: string, at: { readonly path: string; readonly owner: string }): Html {
  return html`<a class="button" href="${pathWith('/secrets/sources/new', { kind, ...at })}">Change</a>`;
}

function stateSection({ record, users, lastUse, nowMs }: SourceView): Html {
  const { minted, failure, last_minted_at: mintedAt } = record;
  return html`<section class="panel" aria-labelledby="state-title">
    <h2 id="state-title">Its value</h2>
    ${definitionList([
      ['Held now', minted === null ? noneHeld(record) : `a value for ${minted.for}`],
      ['Ends', minted === null ? null : html`${writtenTime(minted.until)} (${timeAgo(minted.until, nowMs)})`],
      ['Last minted', mintedAt === null ? 'not yet' : html`${writtenTime(mintedAt)} (${timeAgo(mintedAt, nowMs)})`],
      [
        'Last failure',
        failure === null
          ? 'none since the last value'
          : html`${foreignText(failure.message)} <span class="quiet">(${timeAgo(failure.at, nowMs)})</span>`,
      ],
      ['Last used', lastUsedWords(lastUse, nowMs)],
      [
        'Used by',
        users.length === 0
          ? 'nothing'
          : html`<ul class="plain">
              ${users.map((use) => html`<li>${useLink(use)}</li>`)}
            </ul>`,
      ],
    ])}
  </section>`;
}

function fieldsSection({ source, owner, version }: SourceRecord): Html {
  const { kind, ...fields } = source;
  return html`<section class="panel" aria-labelledby="source-title">
    <h2 id="source-title">${SOURCE_TABLE[kind].title}</h2>
    ${definitionList([
      ...Object.entries(fields).map(
        ([name, value]) => [fieldsOf(kind)[name]?.label ?? name, foreignText(fieldText(value) || 'none')] as const,
      ),
      ['Key', kind === BORROWED_KIND ? 'none' : 'stored, never shown'] as const,
      ['Owner', owner, 'hosted-only'] as const,
      ['Version', String(version)] as const,
    ])}
  </section>`;
}

function trySection({ path, owner }: SourceRecord): Html {
  return html`<section class="panel stack" aria-labelledby="try-title">
    <h2 id="try-title">Try it</h2>
    <p>A dry run says what would be minted, and asks no provider. Asking the provider mints a value and discards it.</p>
    <div class="actions">
      <form method="get" action="/secrets/source">
        <input type="hidden" name="path" value="${path}" /><input type="hidden" name="owner" value="${owner}" />
        <button name="plan" value="1">Dry run</button>
      </form>
      <form method="post" action="/secrets/source">
        <input type="hidden" name="path" value="${path}" /><input type="hidden" name="owner" value="${owner}" />
        <button>Ask the provider</button>
      </form>
    </div>
    ${codeBlock(`svc secret source test ${path}${owner === 'enterprise' ? ' --owner enterprise' : ''}`)}
  </section>`;
}

function testedAlert(tested: TestedSource): Html {
  if ('refusal' in tested) return alert('bad', html`<p>${foreignText(tested.refusal)}</p>`);
  const left = TESTED_LEFT[tested.left ?? 'kept'];
  return alert(
    tested.left === 'not_revoked' ? 'warn' : 'good',
    html`The provider issued a value for ${tested.minted_for}, until ${writtenTime(tested.until)}; ${left}.`,
  );
}

const PLANNED_VALUES: { readonly [V in SourcePlan['value']]: string } = {
  token: 'a token',
  key_set: 'an AWS access key id, its secret key and a session token',
  kept_value: 'the value that is kept there',
};

/** What would be minted. */
export function planPanel(plan: SourcePlan): Html {
  const { life_seconds: seconds, until_at_latest: until, scope, audience, provider_url: url } = plan;
  return html`<section class="panel" aria-labelledby="plan-title" id="plan">
    <h2 id="plan-title">What would be minted</h2>
    ${definitionList([
      ['Value', PLANNED_VALUES[plan.value]],
      ['Acts as', foreignText(plan.identity)],
      ['Scope', scope.length === 0 ? 'whatever the provider gives it' : foreignText(scope.join(', '))],
      ['Audience', audience === null ? null : foreignText(audience)],
      ['Asked of', url === null ? 'nobody; the key signs it' : html`<code>${url}</code>`],
      ['Ends', seconds === null ? html`the provider decides; ${writtenTime(until)} at the latest` : writtenTime(until)],
      ['Key', plan.key_checked ? 'it has the form that is needed' : 'not checked'],
    ])}
    <p class="quiet small">Nothing was asked or stored.</p>
  </section>`;
}
