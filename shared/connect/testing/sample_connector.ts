import type { InstalledConnector, Operation } from '../../model/connector.ts';

/** A valid operation; a test changes one field at a time. */
export function sampleOperation(changes: Partial<Operation> = {}): Operation {
  return {
    name: 'get-item',
    method: 'GET',
    path: '/items/{id}',
    summary: 'Get an item',
    description: '',
    approval: 'none',
    effect: 'read',
    inputs: [{ name: 'id', in: 'path', type: 'string', required: true, description: '' }],
    audit: [],
    ...changes,
  };
}

/** A valid installed connector of `acme/items` with these operations. */
export function sampleConnector(
  operations: readonly Operation[] = [sampleOperation()],
  changes: Partial<InstalledConnector> & { readonly fqn?: string; readonly hosts?: readonly string[] } = {},
): InstalledConnector {
  const { fqn = 'acme/items', hosts = ['api.example.com'], ...rest } = changes;
  return {
    id: 'con_1',
    owner: 'personal',
    spec: {
      fqn,
      version: '1.0.0',
      title: 'Items',
      description: '',
      hosts,
      credential: { kind: 'api_key', scopes: [] },
      operations,
    },
    contentHash: '0'.repeat(64),
    credential: { owner: 'personal', path: `connectors/${fqn}` },
    ...rest,
  };
}
