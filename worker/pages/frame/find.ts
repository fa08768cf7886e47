import { html } from 'hono/html';
import { findRequest, type Place } from '../../../shared/report/find_places.ts';
import type { Found } from '../../services/audit/find_all.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import type { ReadyService } from '../../../shared/wire/ready_services.ts';
import { hasRole } from '../../../shared/model/role.ts';
import type { Html } from './html.ts';
import { layout, type Page } from './layout.ts';
import { NAVIGATION } from './navigation.ts';
import { palette } from './palette.ts';
import type { Person } from './shell.ts';

export const MOST_FOUND = 30;

/** Pages that have no entry of their own in the navigation. */
const MORE_PAGES: readonly (readonly [name: string, path: string, also: string])[] = [
  ['Store a secret', '/secrets/new', 'new add credential token'],
  ['New binding', '/bindings/new', 'add bind host'],
  ['Install a connector', '/connectors/install', 'add new spec'],
  ['Add an MCP server', '/mcp-servers/new', 'new own'],
  ['Explain a request', '/bindings', 'why url'],
];

/** What a page is called where its entry is not beside it. */
const PAGE_NAMES: Readonly<Record<string, string>> = {
  '/approvals': 'Approvals',
  '/approvals?state=all': 'All approvals',
  '/approvals?state=grants': 'Grants of approvals',
  '/approval-rules': 'Rules about approvals',
  '/audit': 'Audit events',
  '/audit/verify': 'Proof of the audit log',
  '/audit/retention': 'Retention of audit events',
  '/audit/sinks': 'Audit sinks',
  '/mcp-servers': 'MCP servers',
  '/marketplace': 'Marketplace of MCP servers',
  '/mcp-rules': 'Rules for MCP servers',
  '/shares': 'Shared bindings',
};

/** The pages that a person may open. */
export function listPages({ role, isLocal }: Pick<Person, 'role' | 'isLocal'>): readonly Place[] {
  const entries = NAVIGATION.flatMap(({ entries: of }) => of.flatMap((entry) => [entry, ...(entry.pages ?? [])]));
  const shown = entries.filter((each) => {
    const needed = 'role' in each ? each.role : undefined;
    const isHosted = 'hostedOnly' in each && each.hostedOnly;
    return (needed === undefined || hasRole(role, needed)) && !(isLocal && isHosted);
  });
  const byPath = new Map(shown.map(({ path, title }) => [path, PAGE_NAMES[path] ?? title]));
  const all = [...[...byPath].map(([path, title]) => [title, path, ''] as const), ...MORE_PAGES];
  return all.map(([name, path, also]) => ({ kind: 'page', name, also, path }));
}

/** The pages of the catalog's services. */
export function listServices(services: readonly Pick<ReadyService, 'name' | 'title'>[]): readonly Place[] {
  return services.map(({ name, title }) => {
    return { kind: 'page', name: `Connect ${title}`, also: `${name} service token`, path: `/services/${name}` };
  });
}

interface FindView {
  readonly text: string;
  readonly found: Found;
}

/** A search for everything, which is also what Ctrl-K opens on each page. */
export function findPage({ text, found }: FindView): Page {
  const content = html`${pageHeader({ title: 'Find', lead: 'Pages, secrets by path, bindings, connectors and MCP servers. Paste a URL to see what would happen to a request.' })}
  ${palette(text, foundWords(text, found), results(text, found.places))}`;
  return layout('Find', content, 'narrow');
}

function foundWords(text: string, { places, isWhole }: Found): string {
  if (text === '') return 'Pages';
  const count = places.length + (findRequest(text) === null ? 0 : 1);
  const words = count === 1 ? '1 result' : `${count}${count > MOST_FOUND - 1 ? ' or more' : ''} results`;
  return isWhole ? words : `${words}; only the first 2000 of each kind are looked through`;
}

const KINDS: { readonly [K in Place['kind']]: string } = {
  page: 'page',
  secret: 'secret',
  binding: 'binding',
  connector: 'connector',
  mcp_server: 'MCP server',
};

function results(text: string, places: readonly Place[]): Html {
  const request = findRequest(text);
  if (request === null && places.length === 0) return nothingFound(text);
  return html`<ul class="plain found">
    ${request === null ? '' : requestItem(request)} ${places.map(placeItem)}
  </ul>`;
}

/** Where else to search. The text goes along to our own log only: the others ask a registry, and it may be a pasted secret. */
function nothingFound(text: string): Html {
  return html`<p class="quiet">
    Nothing of yours has this name. Search <a href="/services">the services</a>,
    <a href="/marketplace">the marketplace of MCP servers</a> or
    <a href="${pathWith('/audit', { q: text })}">the audit log</a>.
  </p>`;
}

function requestItem({ method, url }: { readonly method: string; readonly url: string }): Html {
  return html`<li>
    <a data-result href="${pathWith('/bindings', { method, url })}"
      ><span>Explain <span class="mono">${method} ${foreignText(url)}</span></span>
      <span class="quiet small">request</span></a
    >
  </li>`;
}

function placeItem({ kind, name, path }: Place): Html {
  return html`<li>
    <a data-result href="${path}"
      ><span class="${kind === 'page' ? '' : 'mono'}">${foreignText(name)}</span>
      <span class="quiet small unbroken">${KINDS[kind]}</span></a
    >
  </li>`;
}
