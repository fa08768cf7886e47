import type { ConnectorCredentialRow } from '../store/connectors.ts';

/** What of an oauth2 credential is no secret: the client, and where it is authorised and refreshed. */
export interface OAuthClient {
  readonly client_id: string;
  readonly authorization_url: string | null;
  readonly token_url: string;
  readonly device_authorization_url: string | null;
  readonly scopes: readonly string[];
}

/** The client of a stored credential; null for an API key. */
export function storedClient(row: Pick<ConnectorCredentialRow, 'client'>): OAuthClient | null {
  if (row.client === null) return null;
  const client: OAuthClient = JSON.parse(row.client);
  return client;
}
