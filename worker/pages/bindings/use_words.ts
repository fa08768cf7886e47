import { html } from 'hono/html';
import type { CredentialUse } from '../../services/vault/credential_uses.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

const PATHS: { readonly [K in CredentialUse['kind']]: (id: string) => string } = {
  binding: (id) => `/bindings/${id}`,
  client_certificate: () => '/client-certificates',
  connector: (id) => `/connectors/${id}`,
  mcp_server: (id) => `/mcp-servers/${id}`,
};

const WORDS: { readonly [K in CredentialUse['kind']]: string } = {
  binding: 'binding',
  client_certificate: 'client certificate',
  connector: 'connector',
  mcp_server: 'MCP server',
};

/** What refers to a secret, each with a link to its page. */
export function useLink({ kind, id, name }: Pick<CredentialUse, 'kind' | 'id' | 'name'>): Html {
  return html`<a href="${PATHS[kind](id)}"><span class="mono">${name}</span></a>
    <span class="quiet small unbroken">${WORDS[kind]}</span>`;
}

/** When something was last used, as far as the log tells. */
export function lastUsedWords(time: string | null, nowMs: number): Html {
  return time === null ? html`<span class="quiet unbroken">not recently</span>` : timeAgo(time, nowMs);
}

/** What a time of last use is. */
export const LAST_USED_NOTE = html`<p class="quiet small">
  Last used: when a machine last fetched the credential. It keeps one for at most five minutes.
</p>`;
