import { html } from 'hono/html';
import {
  MARKETPLACE_TRANSPORTS,
  type MarketplaceItem,
  type MarketplacePage,
} from '../../../shared/wire/marketplace.ts';
import { alert } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { initials } from '../components/initials.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { searchField } from '../components/search_field.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import {
  ecosystemName,
  entryKinds,
  entryPath,
  entryState,
  freshnessWords,
  iconPath,
  riskLine,
  ruleLine,
} from './marketplace_words.ts';

export interface MarketplaceView {
  /** The query in the URL. */
  readonly query: {
    readonly q: string;
    readonly registry_type: string;
    readonly transport: string;
    readonly needs_secret: string;
    readonly publisher: string;
    readonly cursor: string;
  };
  readonly found: MarketplacePage | { readonly problem: string; readonly requestId: string };
  readonly nowMs: number;
}

const ECOSYSTEMS = ['npm', 'pypi', 'oci', 'nuget', 'mcpb'].map((kind) => [kind, ecosystemName(kind)] as const);
const SECRETS = [
  ['true', 'Needs some'],
  ['false', 'Needs none'],
] as const;

/** The servers of the MCP registry. All their texts are their publishers'. */
export function marketplacePage(view: MarketplaceView): Page {
  const content = html`${pageHeader({
      title: 'Marketplace',
      lead: 'Servers of the public MCP registry. You see the exact command before you install, and nothing runs on a machine without your consent there.',
    })}
    ${searchForm(view)}
    <p class="small quiet" id="found" role="status">${foundWords(view)}</p>
    <div id="results">${results(view)}</div>`;
  return layout('Marketplace', content);
}

function searchForm({ query }: MarketplaceView): Html {
  return html`<form class="search" role="search" method="get" action="/marketplace" data-island="search">
    ${searchField(query.q, 'github, postgres, weather …')}
    ${filter('registry_type', 'Package', query.registry_type, ECOSYSTEMS)}
    ${filter(
      'transport',
      'Transport',
      query.transport,
      MARKETPLACE_TRANSPORTS.map((value) => [value, value]),
    )}
    ${filter('needs_secret', 'Secrets', query.needs_secret, SECRETS)}
    <button class="primary">Search</button>
    ${publisherField(query.publisher)}
  </form>`;
}

/** Shown once a publisher was chosen, on the page of one of its servers. */
function publisherField(publisher: string): Html | string {
  if (publisher === '') return '';
  return html`<div class="field">
    <label for="publisher">Publisher</label>
    <input id="publisher" name="publisher" value="${publisher}" maxlength="200" autocomplete="off" spellcheck="false" />
  </div>`;
}

type Choice = readonly [value: string, word: string];

function filter(name: string, label: string, chosen: string, choices: readonly Choice[]): Html {
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      <option value="">Any</option>
      ${choices.map(
        ([value, word]) => html`<option value="${value}" ${value === chosen ? 'selected' : ''}>${word}</option>`,
      )}
    </select>
  </div>`;
}

function foundWords({ found, query }: MarketplaceView): string {
  if ('problem' in found) return 'No answer';
  const { items, next_cursor: next } = found;
  const servers = items.length === 1 ? 'server' : 'servers';
  if (next !== null || query.cursor !== '') return `${items.length} ${servers} on this page`;
  return items.length === 0 ? 'No server found' : `${items.length} ${servers}`;
}

function results(view: MarketplaceView): Html {
  const { found, nowMs } = view;
  if ('problem' in found) return failureAlert(view, found);
  return html`<div class="stack">
    ${found.partial ? partialWords() : ''} ${found.stale ? freshnessWords(found, nowMs) : ''}
    ${
      found.items.length === 0
        ? html`<div class="panel flush">${nothing(view)}</div>`
        : html`<ul class="results panel flush">
            ${found.items.map((item) => result(item))}
          </ul>`
    }
    <div class="results-foot">${found.stale ? '' : freshnessWords(found, nowMs)} ${pages(view, found.next_cursor)}</div>
  </div>`;
}

function partialWords(): Html {
  return alert(
    'info',
    html`<p>
      <strong>This list is incomplete.</strong> The list of all servers is still being fetched; until then only names
      are searched.
    </p>`,
  );
}

function result(item: MarketplaceItem): Html {
  const { name, title, description, version } = item;
  return html`<li class="result">
    ${initials(name, item.has_icon ? iconPath(name) : null)}
    <div>
      <h2>
        <a href="${entryPath(name)}" data-result>${foreignText(title ?? name.split('/').at(-1) ?? name)}</a>
        ${entryState(item)} ${item.installed ? badge('good', 'Installed') : ''}
        ${item.rule_problem === null ? '' : badge('warn', 'Not allowed here')}
      </h2>
      <p class="mono quiet">${foreignText(name)}</p>
      <p class="clamped">${foreignText(description)}</p>
      <p class="tags">
        ${entryKinds(item).map((kind) => html`<span class="tag">${foreignText(kind)}</span> `)}
        ${version === null ? '' : html`<span class="quiet small number">${foreignText(version)}</span>`}
      </p>
      ${riskLine(item)} ${ruleLine(item)}
    </div>
  </li>`;
}

function nothing({ query }: MarketplaceView): Html {
  const isFiltered = [query.registry_type, query.transport, query.needs_secret, query.publisher].some(
    (value) => value !== '',
  );
  return emptyState({
    title: query.q === '' ? 'No servers here' : 'No server has this in its name or description',
    next: isFiltered ? 'Try it without the filters, or with another word.' : 'Try another word, or a part of one.',
    action: html`<a class="button" href="/marketplace">Show all servers</a>`,
  });
}

function failureAlert(
  { query }: MarketplaceView,
  found: { readonly problem: string; readonly requestId: string },
): Html {
  return html`<div class="stack">
    ${alert(
      'bad',
      html`<p><strong>The registry did not return a list.</strong> ${found.problem}</p>
        <p class="quiet small">Request <code>${found.requestId}</code></p>`,
    )}
    <div class="actions">
      <a class="button" href="${pathWith('/marketplace', query)}">Try again</a>
      <a class="button" href="/marketplace">Show all servers</a>
    </div>
  </div>`;
}

function pages({ query }: MarketplaceView, next: string | null): Html | string {
  if (next === null && query.cursor === '') return '';
  const first = html`<a class="button" href="${pathWith('/marketplace', { ...query, cursor: '' })}">First page</a>`;
  return html`<nav class="pager" aria-label="Pages">
    ${query.cursor === '' ? '' : first}
    ${next === null ? '' : html`<a class="button" rel="next" href="${pathWith('/marketplace', { ...query, cursor: next })}">Next page</a>`}
  </nav>`;
}
