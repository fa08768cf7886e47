/** An installed connector as the control plane lists it, without its spec. A test changes one field. */

export const CONNECTOR_ID = 'con_01m7yjbz4dz98vffmftfxp52e5';

export const NO_CREDENTIAL = {
  kind: 'api_key',
  ref: 'vault://connectors/acme/items',
  state: 'missing',
  updated_at: null as string | null,
  expires_at: null,
  client_id: null as string | null,
  token_url: null as string | null,
  scopes: [] as readonly string[],
  renewable: false,
};

export const CONNECTOR = {
  id: CONNECTOR_ID,
  owner: 'personal',
  fqn: 'acme/items',
  version: '1.0.0',
  title: 'Items',
  content_hash: 'a'.repeat(64),
  hosts: ['api.example.com'],
  operation_count: 1,
  active: true,
  credential: NO_CREDENTIAL,
  installed_by: 'usr_01m7yjbz4dz98vffmftfxp52e5',
  created_at: '2026-01-01T11:59:00.000Z',
  updated_at: '2026-01-01T11:59:00.000Z',
};
