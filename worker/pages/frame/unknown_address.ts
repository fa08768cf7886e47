import { html } from 'hono/html';
import { pageHeader } from '../components/page_header.ts';
import { layout, type Page } from './layout.ts';

/** The page of an address that has none. It does not repeat the address, which another site may have written. */
export function unknownAddressPage(): Page {
  const content = html`${pageHeader({ title: 'There is no such page', lead: 'The address is mistyped, or what it named is gone.' })}
    <div class="actions">
      <a class="button primary" href="/">Overview</a> <a class="button" href="/marketplace">Marketplace</a>
      <a class="button" href="/docs">API reference</a>
    </div>`;
  return layout('There is no such page', content, 'narrow');
}
