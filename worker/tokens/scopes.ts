import { type Scope, SCOPES } from '../../shared/wire/tokens.ts';

/** Routes whose scope does not follow from the path and the method. */
const SCOPE_OF: Readonly<Record<string, Scope>> = {
  'get /v1/me': 'account:read',
  'get /v1/enterprise': 'account:read',
  'get /v1/usage': 'account:read',
  'get /v1/dependencies': 'account:read',
  'post /v1/audit-events/heads/check': 'audit-events:read',
  'post /v1/secrets/check': 'secrets:read',
  // What refers to a thing is for those who may delete it.
  'get /v1/secrets/{path+}/deletion': 'secrets:write',
  'get /v1/host-bindings/{id}/deletion': 'host-bindings:write',
  'get /v1/connectors/{id}/deletion': 'connectors:write',
  'get /v1/mcp-servers/{id}/deletion': 'mcp-servers:write',
  'post /v1/host-bindings/explain': 'host-bindings:read',
  'post /v1/connectors/validate': 'connectors:read',
  'post /v1/connector-operations/run': 'connectors:run',
  'post /v1/approvals/{id}/decide': 'approvals:decide',
  'post /v1/approvals/{id}/views': 'approvals:decide',
  'delete /v1/approval-grants/{id}': 'approvals:decide',
  'get /v1/mcp-rules': 'mcp-servers:read',
  'post /v1/marketplace/servers/{registryId+}/preview': 'mcp-servers:read',
};

/** Resources that are reached by paths of other resources. */
const OF_RESOURCE: Readonly<Record<string, string>> = {
  marketplace: 'mcp-servers',
  'approval-grants': 'approvals',
  'approval-rules': 'approvals',
  'tunnel-hosts': 'host-bindings',
  'client-certificates': 'host-bindings',
  shares: 'host-bindings',
  'secret-sources': 'secrets',
};

/** The scope that a personal token needs for a route; null if personal tokens cannot call it. */
export function scopeOf(method: string, path: string): Scope | null {
  const resource = path.split('/')[2] ?? '';
  const name = `${OF_RESOURCE[resource] ?? resource}:${method === 'get' ? 'read' : 'write'}`;
  return SCOPE_OF[`${method} ${path}`] ?? SCOPES.find((scope) => scope === name) ?? null;
}
