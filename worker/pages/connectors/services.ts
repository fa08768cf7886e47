import { html } from 'hono/html';
import type { MarketplaceItem } from '../../../shared/wire/marketplace.ts';
import type { ReadyService } from '../../../shared/wire/ready_services.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { initials } from '../components/initials.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { searchField } from '../components/search_field.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { entryPath } from '../mcp/marketplace_words.ts';
import { counted } from '../../../shared/model/sentence.ts';

export const SERVICES_PAGE = { path: '/services', title: 'Services' };

/** Servers of the registry for a text; null if the registry gave no answer in time. */
export type FoundServers = readonly MarketplaceItem[] | null;

interface ServicesView {
  readonly text: string;
  readonly services: readonly ReadyService[];
  /** Absent without a text. */
  readonly servers?: FoundServers;
}

/** The search for a service, which is a gallery without a text. */
export function servicesPage({ text, services, servers }: ServicesView): Page {
  const content = html`${pageHeader({
      title: 'Connect a service',
      lead: 'Paste its token once. Agents use the service without ever seeing it.',
      actions: html`<a class="button" href="/secrets/new">Another credential</a>`,
    })}
    <form class="search" role="search" method="get" action="/services" data-island="search">
      ${searchField(text, 'GitHub, Stripe, api.openai.com …')}
      <button class="primary">Search</button>
    </form>
    <p class="small quiet" id="found" role="status">${counted(services.length, 'service')}</p>
    <div id="results">
      <div class="stack page-part">
        ${services.length === 0 ? html`<div class="panel flush">${nothing(text)}</div>` : gallery(services)}
        ${servers === undefined ? '' : serversPanel(text, servers)}
      </div>
    </div>`;
  return layout('Connect a service', content);
}

function nothing(text: string): Html {
  return emptyState({
    title: 'The catalog has no service with these words',
    next: html`Store its credential, then bind it to the service’s host. Or describe its API in
      <a href="/connectors/install">a connector of your own</a>.`,
    action: html`<a class="button primary" href="${pathWith('/bindings/new', hostIn(text))}">New binding</a>
      <a class="button" href="/services">Show all services</a>`,
  });
}

/** A host name that was searched for starts the binding. */
function hostIn(text: string): Readonly<Record<string, string>> {
  return /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(text) ? { host: text.toLowerCase() } : {};
}

function gallery(services: readonly ReadyService[]): Html {
  return html`<ul class="gallery">
    ${services.map(
      (ready) =>
        html`<li class="result">
          ${initials(ready.title)}
          <div>
            <h2><a href="/services/${ready.name}" data-result>${ready.title}</a></h2>
            <p class="quiet small">${offerWords(ready)}</p>
          </div>
        </li>`,
    )}
  </ul>`;
}

/** What the catalog has for a service. */
function offerWords({ service, connector }: ReadyService): string {
  const parts = [
    ...(connector === null ? [] : [counted(connector.operations.length, 'operation')]),
    ...(service === null ? [] : [counted(service.bindings.length, 'binding')]),
    ...(connector?.credential.kind === 'oauth2' && service === null ? ['sign-in'] : []),
  ];
  return parts.join(' · ');
}

/** What the registry of MCP servers has for a text. All texts are their publishers'. */
export function serversPanel(text: string, servers: FoundServers): Html {
  const all = pathWith('/marketplace', { q: text });
  return html`<section class="panel flush" aria-labelledby="servers-title">
    <div class="panel-head">
      <h2 id="servers-title">MCP servers</h2>
      <a class="small" href="${all}">Search the marketplace</a>
    </div>
    ${
      servers === null
        ? html`<p class="pad quiet">The registry gave no answer in time. The marketplace shows what it has.</p>`
        : servers.length === 0
          ? html`<p class="pad quiet">No server of the registry has these words.</p>`
          : html`<ul class="results">
              ${servers.map(serverItem)}
            </ul>`
    }
  </section>`;
}

function serverItem({ name, title, description }: MarketplaceItem): Html {
  return html`<li class="result">
    ${initials(name)}
    <div>
      <h3><a href="${entryPath(name)}" data-result>${foreignText(title ?? name.split('/').at(-1) ?? name)}</a></h3>
      <p class="mono quiet small">${foreignText(name)}</p>
      <p class="clamped">${foreignText(description)}</p>
    </div>
  </li>`;
}
