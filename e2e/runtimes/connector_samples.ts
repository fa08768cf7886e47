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
