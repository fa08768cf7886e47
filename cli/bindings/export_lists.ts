/** A list of the API that an export has. */
export interface ExportedList {
  /** The kind of each line. */
  readonly kind: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** It takes no limit, or did not take one in an earlier version of the control plane. */
  readonly isWhole?: true;
  /** Only admins may read it. */
  readonly forAdmins?: true;
  /** Lists of each item, by its id; their lines name it in the field. */
  readonly below?: readonly {
    readonly kind: string;
    readonly path: string;
    readonly field: string;
    readonly isWhole?: true;
  }[];
}

/** The lists before the connectors, which are exported with their specs. */
export const LISTS_BEFORE: readonly ExportedList[] = [
  { kind: 'member', path: '/v1/members', forAdmins: true },
  { kind: 'invitation', path: '/v1/invitations', forAdmins: true },
  { kind: 'join_request', path: '/v1/join-requests', forAdmins: true },
  { kind: 'scim_token', path: '/v1/scim-tokens', forAdmins: true },
  {
    kind: 'audit_sink',
    path: '/v1/audit-sinks',
    forAdmins: true,
    isWhole: true,
    below: [{ kind: 'audit_sink_dead_letter', path: 'dead-letters', field: 'audit_sink_id' }],
  },
  {
    kind: 'service_account',
    path: '/v1/service-accounts',
    forAdmins: true,
    below: [
      { kind: 'service_account_secret', path: 'secrets', field: 'service_account_id' },
      { kind: 'service_account_host_binding', path: 'host-bindings', field: 'service_account_id' },
    ],
  },
];

/** The lists after the connectors. */
export const LISTS_AFTER: readonly ExportedList[] = [
  { kind: 'secret', path: '/v1/secrets' },
  { kind: 'secret_source', path: '/v1/secret-sources', isWhole: true },
  { kind: 'host_binding', path: '/v1/host-bindings' },
  { kind: 'tunnel_host', path: '/v1/tunnel-hosts' },
  { kind: 'client_certificate', path: '/v1/client-certificates' },
  {
    kind: 'mcp_server',
    path: '/v1/mcp-servers',
    below: [{ kind: 'mcp_server_revision', path: 'revisions', field: 'mcp_server_id', isWhole: true }],
  },
  { kind: 'mcp_client', path: '/v1/mcp-clients' },
  {
    kind: 'group',
    path: '/v1/groups',
    below: [{ kind: 'group_member', path: 'members', field: 'group_id' }],
  },
  { kind: 'share', path: '/v1/shares' },
  { kind: 'received_share', path: '/v1/shares', query: { list: 'received' } },
  { kind: 'identity', path: '/v1/identities' },
  { kind: 'session', path: '/v1/sessions' },
  { kind: 'sidecar', path: '/v1/sidecars' },
  { kind: 'token', path: '/v1/tokens' },
  { kind: 'approval', path: '/v1/approvals' },
  { kind: 'approval_rule', path: '/v1/approval-rules' },
  { kind: 'approval_grant', path: '/v1/approval-grants' },
  { kind: 'audit_event', path: '/v1/audit-events' },
];

/** Lists of the API that an export does not have, each with the reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  '/v1/audit-events/chains/{id}': 'the hashes of events, which are exported with their events',
  '/v1/dependencies': 'how services work now',
  '/v1/enterprises': 'other enterprises, each of which is exported by itself',
  '/v1/join-offers': 'enterprises of others',
  '/v1/marketplace/servers': 'the public registry',
  '/v1/mcp-servers/{id}/tools': 'what a server listed when it ran last; what is allowed of it is in the server',
  '/v1/usage': 'counts of what is exported',
};

/** Lists that a control plane of an earlier version does not have, so nothing is in them. */
export const MAY_BE_ABSENT: ReadonlySet<string> = new Set(['/v1/client-certificates', '/v1/approval-rules']);
