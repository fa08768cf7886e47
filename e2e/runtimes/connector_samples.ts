/** The host of the sample connectors; a test resolves it to its own upstream. */
export const UPSTREAM_HOST = 'api.example.test';

/** A valid spec as people write it; a test changes one field at a time. */
export const ITEMS_SPEC = {
  schema_version: 1,
  connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items', description: 'Items of a test' },
  hosts: [UPSTREAM_HOST],
  credential: { kind: 'api_key' },
  operations: [
    {
      name: 'get-item',
      method: 'GET',
      path: '/items/{id}',
      summary: 'Get an item',
      effect: 'read',
      inputs: [
        { name: 'id', in: 'path', type: 'string', required: true },
        { name: 'q', in: 'query' },
      ],
      audit: [
        { name: 'item', source: 'path.id' },
        { name: 'searched', source: 'query.q', redact: true },
        { name: 'status', source: 'status' },
      ],
    },
    {
      name: 'create-item',
      method: 'POST',
      path: '/items',
      summary: 'Create an item',
      effect: 'write',
      inputs: [{ name: 'title', in: 'body', required: true }],
    },
    {
      name: 'delete-item',
      method: 'DELETE',
      path: '/items/{id}',
      summary: 'Delete an item',
      effect: 'delete',
      approval: 'required',
      inputs: [{ name: 'id', in: 'path', type: 'string', required: true }],
      audit: [{ name: 'item', source: 'path.id', redact: true }],
    },
  ],
};

/** The same spec under another version, with some of its fields changed. */
export function itemsSpec(version: string, changes: object = {}): typeof ITEMS_SPEC {
  return { ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, version }, ...changes };
}

/** The login of a program, which keeps its tokens at the control plane. */
export const LOGIN_SPEC = {
  schema_version: 1,
  connector: { fqn: 'login/claude', version: '1.0.0', title: 'Login' },
  hosts: ['auth.example.test'],
  credential: {
    kind: 'oauth2',
    token_url: 'https://auth.example.test/token',
    login: { client_id: 'client-of-a-test', token_request: 'json', hosts: ['api.example.test'] },
  },
  operations: [{ name: 'token', method: 'POST', path: '/token', effect: 'write' }],
};

/** A binding that sends the access token of this login. */
export const LOGIN_BINDING = {
  host: 'api.example.test',
  scheme: 'bearer',
  credential_ref: 'vault://connectors/login/claude',
  emit_mechanism: 'sentinel-swap',
  sentinel: { value: 'placeholder-0123456789abcdef' },
};
