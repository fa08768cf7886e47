// What the sweep of a local control plane does not reach. That of a hosted one reaches it, but for what is named there.

/** Reads of a hosted control plane, of a sign-in at a provider, or of a registry of packages. */
export const READ_ELSEWHERE = [
  /^\/auth\/(?:\{provider\}|sso|link|connectors)/,
  /^\/(?:scim|oauth|\.well-known\/oauth-)/,
  /^\/v1\/(?:me|enterprise)\/deletion$/,
  '/v1/enterprises/{id}/merge',
  '/v1/members/{id}/departure',
  '/v1/marketplace/readmes/{registryId}',
];
/** The same of the console, and a sign-in at a remote MCP server. */
export const PAGES_ELSEWHERE = [
  /^\/auth\//,
  /^\/(?:account|enterprise)\/delete$/,
  /^\/enterprises\/(?:leave|\{id\}\/merge)$/,
  '/account/mcp-clients/{id}/end',
  '/directory/tokens/{id}/revoke',
  '/invitations/{token}',
  '/members/{id}/remove',
  '/mcp-servers/{id}/authorize/forget',
];
/** Forms that none of the pages read here has: of a hosted control plane, and of what this world has none of. A new form has to be sent. */
export const FORMS_ELSEWHERE: readonly string[] = [
  '/audit/views/forget',
  '/audit/retention/remove',
  '/services/{name}/test',
  '/mcp-servers/{id}/authorize/forget',
  '/members/invitations/{id}/revoke',
  '/invitations/{token}',
  '/enterprises/{id}/use',
  '/members/requests/{id}/accept',
  '/members/requests/{id}/decline',
  '/enterprises/{id}/ask',
  '/enterprises/requests/{id}/withdraw',
  '/enterprises/{id}/merge',
  '/members/{id}/remove',
  '/enterprises/leave',
  '/enterprise/delete',
  '/account/delete',
  '/groups/{id}/members/{user}/remove',
  '/directory/tokens',
  '/directory/tokens/{id}/revoke',
  '/shares/{id}/accept',
  '/shares/{id}/decline',
  '/shares/{id}/end',
  '/account/mcp-clients/{id}/end',
  '/members/{id}/resume',
  '/identities/link',
  '/identities/remove',
  '/device/decide',
  '/sign-up/code',
  '/auth/{provider}/acs',
  '/auth/{provider}/link',
  '/account/push',
  '/account/push/{id}/end',
];
export const isElsewhere = (route: string, others: readonly (RegExp | string)[]) =>
  others.some((other) => (typeof other === 'string' ? route === other : other.test(route)));
