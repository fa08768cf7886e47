import { AUDIT_EVENT_TYPES } from '../../shared/model/audit_event.ts';
import { CREDENTIAL_KINDS } from '../../shared/model/connector.ts';
import { MCP_HEALTH_STATES } from '../../shared/model/mcp_server.ts';
import { MCP_TOOL_STATES, REVIEWED_KINDS } from '../../shared/model/mcp_tool.ts';
import type { AnySourceKind } from '../../shared/wire/sources/source_table.ts';
import { ROLES } from '../../shared/model/role.ts';
import { APPROVAL_STATES } from '../../shared/wire/approvals.ts';
import { ANCHOR_WAYS } from '../../shared/wire/audit_heads.ts';
import { SINK_KINDS, SINK_STOPS } from '../../shared/wire/audit_sinks.ts';
import { DOMAIN_JOINING } from '../../shared/wire/enterprise.ts';
import { CONNECTED_BY } from '../../shared/wire/mcp/mcp_clients.ts';
import { SERVICE_ACCOUNT_REACHES } from '../../shared/wire/service_accounts.ts';
import { SHARE_KINDS } from '../../shared/wire/sharing/shares.ts';
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';

/** The states of a stored credential; a missing one has no row. */
const STORED_CREDENTIAL_STATES = ['authorisation_required', 'ready', 'reauthorisation_required'] as const;

/** The tables for the queries. The numbered migrations create them; a test compares the two. */
export const installation = sqliteTable('installation', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
});

export const writeGuards = sqliteTable('write_guards', { holds: integer('holds').notNull() });

export const enterprises = sqliteTable('enterprises', {
  id: text('id').primaryKey(),
  slug: text('slug').notNull(),
  name: text('name').notNull(),
  policyVersion: integer('policy_version').notNull().default(0),
  createdAt: text('created_at').notNull(),
  allowedDomains: text('allowed_domains').notNull().default('[]'),
  allowedProviders: text('allowed_providers'),
  billingEmail: text('billing_email'),
  ssoRequired: integer('sso_required', { mode: 'boolean' }).notNull().default(false),
  domainJoining: text('domain_joining', { enum: [...DOMAIN_JOINING] })
    .notNull()
    .default('automatic'),
  /** Its row stays, because the audit log of the enterprise does. */
  deletedAt: text('deleted_at'),
  /** The ids of the MCP clients that its own OpenID provider connects, as JSON. */
  providerMcpClients: text('provider_mcp_clients').notNull().default('[]'),
});

/** Who a user is: identities and the verified address belong to a person, everything else to a user. */
export const people = sqliteTable('people', {
  id: text('id').primaryKey(),
  /** Lower-case; null until the address is verified. */
  verifiedEmail: text('verified_email'),
  createdAt: text('created_at').notNull(),
});

/** A person's account in one enterprise. */
export const users = sqliteTable('users', {
  id: text('id').primaryKey(),
  personId: text('person_id').notNull(),
  enterpriseId: text('enterprise_id').notNull(),
  email: text('email'),
  displayName: text('display_name').notNull(),
  role: text('role', { enum: [...ROLES] }).notNull(),
  policyVersion: integer('policy_version').notNull().default(0),
  createdAt: text('created_at').notNull(),
  suspendedAt: text('suspended_at'),
  /** When it was removed or left. It is suspended then too, so that whatever refuses a suspended user refuses it. */
  leftAt: text('left_at'),
  /** The person's, for workers of an earlier version. Triggers keep it; nothing else may use it. */
  verifiedEmail: text('verified_email'),
});

export const secrets = sqliteTable('secrets', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  path: text('path').notNull(),
  description: text('description'),
  version: integer('version').notNull(),
  sealed: text('sealed').notNull(),
  fingerprint: text('fingerprint'),
  /** Of the value of this version; null if it is not known. */
  expiresAt: text('expires_at'),
  createdAt: text('created_at').notNull(),
  updatedAt: text('updated_at').notNull(),
});

/** Secrets whose value is minted. Triggers delete the source of a secret that is deleted or gets another version. */
export const secretSources = sqliteTable('secret_sources', {
  secretId: text('secret_id').primaryKey(),
  kind: text('kind').$type<AnySourceKind>().notNull(),
  /** JSON without secrets. */
  config: text('config').notNull(),
  sealedMaterial: text('sealed_material').notNull(),
  /** The minted value, until its end. */
  sealedValue: text('sealed_value'),
  /** What revokes that value at its provider, if it needs more than the value; with the time of its mint. */
  sealedRevocation: text('sealed_revocation'),
  mintedFor: text('minted_for'),
  mintedAt: text('minted_at'),
  expiresAt: text('expires_at'),
  failure: text('failure'),
  failedAt: text('failed_at'),
  lease: text('lease'),
  leaseUntil: integer('lease_until'),
  updatedAt: text('updated_at').notNull(),
});

export const hostBindings = sqliteTable('host_bindings', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  host: text('host').notNull(),
  sentinel: text('sentinel').notNull(),
  record: text('record').notNull(),
  createdAt: text('created_at').notNull(),
  updatedAt: text('updated_at').notNull(),
});

export const tunnelHosts = sqliteTable('tunnel_hosts', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  host: text('host').notNull(),
  createdAt: text('created_at').notNull(),
});

export const clientCertificates = sqliteTable('client_certificates', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  host: text('host').notNull(),
  path: text('path').notNull(),
  effect: text('effect'),
  http2: integer('http2', { mode: 'boolean' }).notNull(),
  createdAt: text('created_at').notNull(),
});

export const bindingCredentials = sqliteTable(
  'binding_credentials',
  { bindingId: text('binding_id').notNull(), ownerId: text('owner_id').notNull(), path: text('path').notNull() },
  (table) => [primaryKey({ columns: [table.bindingId, table.path] })],
);

export const sidecars = sqliteTable('sidecars', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  userId: text('user_id').notNull(),
  name: text('name').notNull(),
  signingKey: text('signing_key').notNull(),
  receivingKey: text('receiving_key').notNull(),
  createdAt: text('created_at').notNull(),
  lastSeenAt: text('last_seen_at'),
  revokedAt: text('revoked_at'),
  /** When it ends by itself; null for the sidecar of a person. */
  expiresAt: text('expires_at'),
  /** It gets nothing that the enterprise owns. */
  ownOnly: integer('own_only', { mode: 'boolean' }).notNull().default(false),
});

/** Users that no person signs in as: the sidecars of jobs join as them. */
export const serviceAccounts = sqliteTable('service_accounts', {
  userId: text('user_id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  issuer: text('issuer').notNull(),
  audience: text('audience').notNull(),
  /** JSON: the value or the prefix of each claim. */
  claims: text('claims').notNull(),
  reach: text('reach', { enum: [...SERVICE_ACCOUNT_REACHES] }).notNull(),
  minutes: integer('minutes').notNull(),
  /** JSON: the issuer's public keys; null if they are read from the issuer. */
  keys: text('keys'),
  lastJoinedAt: text('last_joined_at'),
});

/** Tokens that jobs joined with, until nobody takes them any more. */
export const joinTokens = sqliteTable('join_tokens', {
  /** SHA-256 over the enterprise, the issuer and the token's id. */
  tokenHash: text('token_hash').primaryKey(),
  expiresAt: integer('expires_at').notNull(),
});

export const sidecarCalls = sqliteTable(
  'sidecar_calls',
  { sidecarId: text('sidecar_id').notNull(), jti: text('jti').notNull(), expiresAt: integer('expires_at').notNull() },
  (table) => [primaryKey({ columns: [table.sidecarId, table.jti] })],
);

export const auditEvents = sqliteTable('audit_events', {
  position: integer('position').primaryKey({ autoIncrement: true }),
  enterpriseId: text('enterprise_id').notNull(),
  writer: text('writer').notNull(),
  sequence: integer('sequence').notNull(),
  id: text('id').notNull(),
  type: text('type', { enum: [...AUDIT_EVENT_TYPES] }).notNull(),
  time: text('time').notNull(),
  sidecarId: text('sidecar_id'),
  sessionId: text('session_id'),
  actor: text('actor'),
  host: text('host'),
  connector: text('connector'),
  data: text('data').notNull(),
  receivedAt: text('received_at').notNull(),
  previousHash: text('previous_hash').notNull(),
  hash: text('hash').notNull(),
});

/** The requests of each minute of the last day. Derived from events, so that a page need not count them. */
export const requestMinutes = sqliteTable(
  'request_minutes',
  {
    enterpriseId: text('enterprise_id').notNull(),
    minute: integer('minute').notNull(),
    decision: text('decision', { enum: ['added', 'connector', 'passed', 'refused'] }).notNull(),
    requests: integer('requests').notNull(),
  },
  (table) => [primaryKey({ columns: [table.enterpriseId, table.minute, table.decision] })],
);

export const auditHeads = sqliteTable('audit_heads', {
  writer: text('writer').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  sequence: integer('sequence').notNull(),
  hash: text('hash').notNull(),
  seal: text('seal').notNull(),
  /** On the control plane's own head: the number of the enterprise's chains, and a hash over their writers. */
  writers: integer('writers').notNull().default(0),
  writersHash: text('writers_hash').notNull().default(''),
});

/** The writers of an enterprise, in the order in which their chains began. */
export const auditWriters = sqliteTable(
  'audit_writers',
  {
    enterpriseId: text('enterprise_id').notNull(),
    number: integer('number').notNull(),
    writer: text('writer').notNull(),
  },
  (table) => [primaryKey({ columns: [table.enterpriseId, table.number] })],
);

/** The last event that was removed from the beginning of a writer's chain. */
export const auditBeginnings = sqliteTable('audit_beginnings', {
  writer: text('writer').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  sequence: integer('sequence').notNull(),
  hash: text('hash').notNull(),
  seal: text('seal').notNull(),
});

export const signInLinks = sqliteTable('sign_in_links', {
  codeHash: text('code_hash').primaryKey(),
  userId: text('user_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
});

export const browserSessions = sqliteTable('browser_sessions', {
  id: text('id').primaryKey(),
  tokenHash: text('token_hash').notNull(),
  userId: text('user_id').notNull(),
  /** How its user signed in. */
  provider: text('provider').notNull(),
  /** The browser's name for itself. */
  client: text('client').notNull(),
  createdAt: text('created_at').notNull(),
  lastSeenAt: text('last_seen_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
});

export const identities = sqliteTable(
  'identities',
  {
    provider: text('provider').notNull(),
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    /** The user that it was added to, for workers of an earlier version. Nothing else may use it. */
    userId: text('user_id').notNull(),
    personId: text('person_id').notNull(),
    email: text('email').notNull(),
    emailVerified: integer('email_verified', { mode: 'boolean' }).notNull(),
    createdAt: text('created_at').notNull(),
    lastSignInAt: text('last_sign_in_at').notNull(),
    id: text('id').notNull(),
    /** The enterprise whose provider vouches that it is the person's, and whose user alone it signs in to; null: the person's own. */
    vouchedBy: text('vouched_by'),
  },
  (table) => [primaryKey({ columns: [table.provider, table.issuer, table.subject] })],
);

/** Invitations to enterprises. A link carries the token, of which only the hash is stored. */
export const invitations = sqliteTable('invitations', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  /** Lower-case. */
  email: text('email').notNull(),
  role: text('role', { enum: [...ROLES] }).notNull(),
  tokenHash: text('token_hash').notNull(),
  invitedBy: text('invited_by').notNull(),
  createdAt: text('created_at').notNull(),
  endsAt: integer('ends_at').notNull(),
  /** Null until it is used or revoked. */
  outcome: text('outcome', { enum: ['accepted', 'revoked'] }),
  /** When the row is deleted: until then the link says what became of it. */
  expiresAt: integer('expires_at').notNull(),
});

/** Requests of people to join an enterprise by an address of its domains. */
export const joinRequests = sqliteTable('join_requests', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  personId: text('person_id').notNull(),
  /** The proven address, lower-case. */
  email: text('email').notNull(),
  displayName: text('display_name').notNull(),
  createdAt: text('created_at').notNull(),
  endsAt: integer('ends_at').notNull(),
  /** Null until it is decided or withdrawn. */
  outcome: text('outcome', { enum: ['accepted', 'declined', 'withdrawn'] }),
  /** When the row is deleted: until then its person does not ask again. */
  expiresAt: integer('expires_at').notNull(),
});

/** Groups of an enterprise's people. Triggers delete memberships and shares with the group, the person or what is shared. */
export const groups = sqliteTable('groups', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  /** Unique in the enterprise, in whatever case. */
  name: text('name').notNull(),
  createdAt: text('created_at').notNull(),
});

export const groupMembers = sqliteTable(
  'group_members',
  { groupId: text('group_id').notNull(), userId: text('user_id').notNull() },
  (table) => [primaryKey({ columns: [table.groupId, table.userId] })],
);

/** What a person lets another person, or a group, use. Triggers mark the policies that a change concerns as changed. */
export const shares = sqliteTable('shares', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  kind: text('kind', { enum: [...SHARE_KINDS] }).notNull(),
  resourceId: text('resource_id').notNull(),
  /** One of the two. */
  userId: text('user_id'),
  groupId: text('group_id'),
  createdAt: text('created_at').notNull(),
});

/** The revision of something shared that a person accepted. */
export const shareAcceptances = sqliteTable(
  'share_acceptances',
  {
    shareId: text('share_id').notNull(),
    userId: text('user_id').notNull(),
    revision: text('revision').notNull(),
  },
  (table) => [primaryKey({ columns: [table.shareId, table.userId] })],
);

/** Tokens with which directories call the SCIM endpoints of an enterprise. */
export const scimTokens = sqliteTable('scim_tokens', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  name: text('name').notNull(),
  tokenHash: text('token_hash').notNull(),
  createdBy: text('created_by').notNull(),
  createdAt: text('created_at').notNull(),
  expiresAt: text('expires_at').notNull(),
  lastUsedAt: text('last_used_at'),
  revokedAt: text('revoked_at'),
});

/** What a directory says about a user. A trigger deletes it when the user leaves. */
export const scimUsers = sqliteTable('scim_users', {
  userId: text('user_id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  /** Unique in the enterprise, in whatever case. */
  userName: text('user_name').notNull(),
  externalId: text('external_id'),
  /** The address that counts, lower-case; unique in the enterprise. */
  email: text('email').notNull(),
  /** JSON: display name, name and addresses. */
  attributes: text('attributes').notNull(),
  /** The suspension that the directory made: the user's `suspended_at` at that time. */
  deactivatedAt: text('deactivated_at'),
  createdAt: text('created_at').notNull(),
  updatedAt: text('updated_at').notNull(),
});

/** Groups that a directory manages. A trigger deletes the row with the group. */
export const scimGroups = sqliteTable('scim_groups', {
  groupId: text('group_id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  externalId: text('external_id'),
  updatedAt: text('updated_at').notNull(),
});

/** Addresses of people who left an enterprise and then deleted their account: neither a domain nor a provider takes them back. */
export const departedAddresses = sqliteTable(
  'departed_addresses',
  { enterpriseId: text('enterprise_id').notNull(), addressHash: text('address_hash').notNull() },
  (table) => [primaryKey({ columns: [table.enterpriseId, table.addressHash] })],
);

/** Receivers of an enterprise's audit events. */
export const auditSinks = sqliteTable('audit_sinks', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  kind: text('kind', { enum: [...SINK_KINDS] }).notNull(),
  name: text('name').notNull(),
  /** Shown to people; the whole target is sealed, because a URL may contain a password. */
  host: text('host').notNull(),
  /** Event types and prefixes, separated by commas; null for all events. */
  types: text('types'),
  /** The target and its secrets, as JSON. */
  sealed: text('sealed').notNull(),
  createdAt: text('created_at').notNull(),
  /** The position of the last event that the receiver accepted, or that became a dead letter. */
  cursor: integer('cursor').notNull(),
  /** How many events the batch in flight has; null if the next one may be chosen. A retry sends the same events. */
  batch: integer('batch'),
  holder: text('holder').notNull().default(''),
  heldUntil: text('held_until').notNull().default(''),
  nextTryAt: text('next_try_at').notNull().default(''),
  failures: integer('failures').notNull().default(0),
  failingSince: text('failing_since'),
  problem: text('problem'),
  deliveredAt: text('delivered_at'),
  /** Events that a receiver accepted a batch without (OTLP's partial success). */
  rejected: integer('rejected').notNull().default(0),
  disabledAt: text('disabled_at'),
  disabledReason: text('disabled_reason', { enum: [...SINK_STOPS] }),
  /** Of mail, as JSON: who has got the batch in flight, and how many messages there were in this hour. */
  mailing: text('mailing'),
});

/** Events that a receiver refused, by position. */
export const auditDeadLetters = sqliteTable(
  'audit_dead_letters',
  {
    sinkId: text('sink_id').notNull(),
    position: integer('position').notNull(),
    eventId: text('event_id').notNull(),
    problem: text('problem').notNull(),
    failedAt: text('failed_at').notNull(),
    attempts: integer('attempts').notNull().default(1),
    /** 1: it is sent again, after what is new. */
    replay: integer('replay').notNull().default(0),
    /** Until then it is not sent again. */
    nextTryAt: text('next_try_at').notNull().default(''),
    /** Of mail: the ids of the members who did not get it, separated by commas; null if nobody got it. */
    recipients: text('recipients'),
  },
  (table) => [primaryKey({ columns: [table.sinkId, table.position] })],
);

export const signInFlows = sqliteTable('sign_in_flows', {
  stateHash: text('state_hash').primaryKey(),
  extraHash: text('extra_hash').notNull(),
  provider: text('provider').notNull(),
  redirectUrl: text('redirect_url').notNull(),
  returnTo: text('return_to').notNull(),
  expiresAt: integer('expires_at').notNull(),
  /** The user and browser session that started adding a sign-in; null for a flow that signs in. */
  linkUserId: text('link_user_id'),
  linkSession: text('link_session'),
});

export const passwords = sqliteTable('passwords', {
  email: text('email').primaryKey(),
  hash: text('hash').notNull(),
  updatedAt: text('updated_at').notNull(),
});

export const signups = sqliteTable('signups', {
  idHash: text('id_hash').primaryKey(),
  email: text('email').notNull(),
  displayName: text('display_name').notNull(),
  passwordHash: text('password_hash').notNull(),
  codeHash: text('code_hash').notNull(),
  attemptsLeft: integer('attempts_left').notNull(),
  expiresAt: integer('expires_at').notNull(),
});

export const throttles = sqliteTable('throttles', {
  key: text('key').primaryKey(),
  count: integer('count').notNull(),
  windowEnds: integer('window_ends').notNull(),
});

export const connectors = sqliteTable('connectors', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  fqn: text('fqn').notNull(),
  version: text('version').notNull(),
  title: text('title').notNull(),
  hosts: text('hosts').notNull(),
  operationCount: integer('operation_count').notNull(),
  credentialKind: text('credential_kind', { enum: [...CREDENTIAL_KINDS] }).notNull(),
  contentHash: text('content_hash').notNull(),
  spec: text('spec').notNull(),
  installedBy: text('installed_by').notNull(),
  createdAt: text('created_at').notNull(),
  updatedAt: text('updated_at').notNull(),
  /** When it first had a credential. The database sets it, and nothing unsets it. */
  activatedAt: text('activated_at'),
});

export const connectorVersions = sqliteTable(
  'connector_versions',
  {
    connectorId: text('connector_id').notNull(),
    version: text('version').notNull(),
    contentHash: text('content_hash').notNull(),
  },
  (table) => [primaryKey({ columns: [table.connectorId, table.version] })],
);

export const connectorCredentials = sqliteTable('connector_credentials', {
  connectorId: text('connector_id').primaryKey(),
  ownerId: text('owner_id').notNull(),
  path: text('path').notNull(),
  kind: text('kind', { enum: [...CREDENTIAL_KINDS] }).notNull(),
  state: text('state', { enum: [...STORED_CREDENTIAL_STATES] }).notNull(),
  client: text('client'),
  expiresAt: text('expires_at'),
  renewable: integer('renewable', { mode: 'boolean' }).notNull(),
  lease: text('lease'),
  leaseUntil: integer('lease_until'),
  updatedAt: text('updated_at').notNull(),
});

/** What an approval is about; the columns' names are from connectors, which came first. */
const subjectColumns = () => ({
  subject: text('subject', { enum: ['connector', 'mcp_server'] }).notNull(),
  subjectId: text('connector_id').notNull(),
  subjectOwnerId: text('connector_owner_id').notNull(),
  subjectName: text('connector_fqn').notNull(),
  subjectVersion: text('connector_version').notNull(),
  /** The operation, or the tool. */
  action: text('operation').notNull(),
});

export const approvals = sqliteTable('approvals', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  userId: text('user_id').notNull(),
  ...subjectColumns(),
  summary: text('summary').notNull(),
  fingerprint: text('fingerprint').notNull(),
  sidecarId: text('sidecar_id'),
  sessionId: text('session_id'),
  sessionName: text('session_name'),
  folder: text('folder'),
  state: text('state', { enum: [...APPROVAL_STATES] }).notNull(),
  requestedAt: text('requested_at').notNull(),
  /** Null if nothing waits for the decision. */
  heldUntil: text('held_until'),
  expiresAt: text('expires_at').notNull(),
  decidedBy: text('decided_by'),
  decidedAt: text('decided_at'),
  validUntil: text('valid_until'),
  usedBy: text('used_by'),
  usedAt: text('used_at'),
  /** What a grant would cover; null: identical requests only. */
  scope: text('scope'),
  grantId: text('grant_id'),
  /** The operation's effect when it was asked for; null for a tool call, and if it is not known. */
  effect: text('effect'),
  /** It is over for good, if it waits or was not used: its connector, its server's name, or a rule about it has changed. Triggers set it. */
  ended: integer('ended', { mode: 'boolean' }).notNull().default(false),
});

/** Who may approve what, in an enterprise. A rule is never changed: another one takes its place. */
export const approvalRules = sqliteTable('approval_rules', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  subject: text('subject', { enum: ['connector', 'mcp_server'] }).notNull(),
  name: text('name').notNull(),
  action: text('action').notNull(),
  /** Each between commas, such as `,delete,spend,`; null for every effect. */
  effects: text('effects'),
  /** One of the two. */
  role: text('role', { enum: [...ROLES] }),
  groupId: text('group_id'),
  persons: integer('persons').notNull(),
  excludesRequester: integer('excludes_requester', { mode: 'boolean' }).notNull(),
  createdAt: text('created_at').notNull(),
});

/** What each person said who approved a request. */
export const approvalVotes = sqliteTable(
  'approval_votes',
  {
    approvalId: text('approval_id').notNull(),
    userId: text('user_id').notNull(),
    votedAt: text('voted_at').notNull(),
    /** What they would also allow; null: only this request. */
    grantSeconds: integer('grant_seconds'),
    grantTimes: integer('grant_times'),
    /** It does not count any more, for good: other rules hold, or its person has another role or group, was suspended, or left. */
    ended: integer('ended', { mode: 'boolean' }).notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.approvalId, table.userId] })],
);

/** Requests that wait, to be shown to a page: sealed to its key by the sidecar that holds them. */
export const approvalViews = sqliteTable('approval_views', {
  id: text('id').primaryKey(),
  approvalId: text('approval_id').notNull(),
  userId: text('user_id').notNull(),
  key: text('key').notNull(),
  /** Sealed to the page's key, not with the master key. */
  sealed: text('answer'),
  createdAt: text('created_at').notNull(),
});

export const approvalGrants = sqliteTable('approval_grants', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  userId: text('user_id').notNull(),
  ...subjectColumns(),
  summary: text('summary').notNull(),
  /** The scope of the approved request, or its fingerprint if it has none. */
  covers: text('covers').notNull(),
  identicalOnly: integer('identical_only', { mode: 'boolean' }).notNull(),
  sidecarId: text('sidecar_id'),
  sessionId: text('session_id'),
  sessionName: text('session_name'),
  /** Null: any number. */
  times: integer('times'),
  used: integer('used').notNull(),
  lastUsedAt: text('last_used_at').notNull(),
  givenAt: text('given_at').notNull(),
  endsAt: text('ends_at').notNull(),
  revokedAt: text('revoked_at'),
  revokedBy: text('revoked_by'),
  effect: text('effect'),
  /** The approval that it was given with: whoever approved that has given it. Null: only its user gave it. */
  approvalId: text('approval_id'),
  /** It is over for good: its connector, its server, or a rule about it has changed. Triggers set it. */
  ended: integer('ended', { mode: 'boolean' }).notNull().default(false),
});

export const oauthFlows = sqliteTable('oauth_flows', {
  id: text('id').primaryKey(),
  connectorId: text('connector_id').notNull(),
  userId: text('user_id').notNull(),
  grant: text('grant_kind', { enum: ['browser', 'device'] }).notNull(),
  redirectUri: text('redirect_uri'),
  sealed: text('sealed').notNull(),
  expiresAt: integer('expires_at').notNull(),
  intervalSeconds: integer('interval_seconds').notNull(),
  nextPollAt: integer('next_poll_at').notNull(),
});

export const pendingLogins = sqliteTable('pending_logins', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  program: text('program').notNull(),
  tokenUrl: text('token_url').notNull(),
  clientId: text('client_id').notNull(),
  /** JSON. */
  grants: text('grants').notNull(),
  state: text('state', { enum: ['open', 'held'] }).notNull(),
  /** A public JWK. */
  publicKey: text('public_key').notNull(),
  /** The private key while it is open; then the tokens. */
  sealed: text('sealed').notNull(),
  /** JSON; null while it is open. */
  account: text('account'),
  /** JSON of an OAuth client with its revocation URL; null if svc knows none. */
  client: text('client'),
  /** The sidecar that asked for it first, and captures it. */
  sidecarId: text('sidecar_id'),
  createdAt: text('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
});

export const signingKeys = sqliteTable('signing_keys', {
  id: text('id').primaryKey(),
  publicKey: text('public_key').notNull(),
  sealedPrivateKey: text('sealed_private_key').notNull(),
  createdAt: text('created_at').notNull(),
  verifiesUntil: integer('verifies_until'),
});

/** The key that identifies this control plane to push services (RFC 8292): one row. */
export const pushKeys = sqliteTable('push_keys', {
  id: text('id').primaryKey(),
  /** The point, uncompressed, as base64url. */
  publicKey: text('public_key').notNull(),
  sealedPrivateKey: text('sealed_private_key').notNull(),
  createdAt: text('created_at').notNull(),
});

/** How a signed-in browser is reached while no page is open. It ends with the session. */
export const pushSubscriptions = sqliteTable('push_subscriptions', {
  sessionId: text('session_id').primaryKey(),
  userId: text('user_id').notNull(),
  /** SHA-256 of the endpoint: a browser is told of the requests of one user only. */
  endpointHash: text('endpoint_hash').notNull(),
  /** Of the push service. */
  host: text('host').notNull(),
  /** The endpoint and the browser's keys, as JSON. */
  sealed: text('sealed').notNull(),
  createdAt: text('created_at').notNull(),
  /** Seconds since the epoch: it is not called until then, as the push service asks or after failures. */
  quietUntil: integer('quiet_until').notNull().default(0),
  /** How many messages in a row were not taken. */
  failures: integer('failures').notNull().default(0),
  /** Why the last message was not taken; null if it was. */
  problem: text('problem'),
});

export const tokenFamilies = sqliteTable('token_families', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  /** The provider of the approving user's sign-in; empty if it was not recorded. */
  provider: text('provider').notNull().default(''),
  client: text('client').notNull(),
  createdAt: text('created_at').notNull(),
  lastUsedAt: text('last_used_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  revokedAt: text('revoked_at'),
});

export const refreshTokens = sqliteTable('refresh_tokens', {
  tokenHash: text('token_hash').primaryKey(),
  familyId: text('family_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
  usedAt: text('used_at'),
});

/** Questions to the audit log that a person keeps. */
export const savedViews = sqliteTable(
  'saved_views',
  {
    userId: text('user_id').notNull(),
    name: text('name').notNull(),
    query: text('query').notNull(),
    createdAt: text('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.userId, table.name] })],
);

export const personalTokens = sqliteTable('personal_tokens', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  name: text('name').notNull(),
  tokenHash: text('token_hash').notNull(),
  scopes: text('scopes').notNull(),
  createdAt: text('created_at').notNull(),
  expiresAt: text('expires_at').notNull(),
  lastUsedAt: text('last_used_at'),
  revokedAt: text('revoked_at'),
});

export const deviceCodes = sqliteTable('device_codes', {
  codeHash: text('code_hash').primaryKey(),
  userCodeMac: text('user_code_mac').notNull(),
  client: text('client').notNull(),
  address: text('address').notNull(),
  createdAt: text('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  intervalSeconds: integer('interval_seconds').notNull(),
  nextPollAt: integer('next_poll_at').notNull(),
  state: text('state', { enum: ['pending', 'approved', 'denied'] }).notNull(),
  userId: text('user_id'),
  /** The provider of the deciding user's sign-in. */
  provider: text('provider').notNull().default(''),
});

export const enterpriseOidc = sqliteTable('enterprise_oidc', {
  enterpriseId: text('enterprise_id').primaryKey(),
  issuer: text('issuer').notNull(),
  clientId: text('client_id').notNull(),
  sealedSecret: text('sealed_secret').notNull(),
  updatedAt: text('updated_at').notNull(),
});

export const enterpriseSaml = sqliteTable('enterprise_saml', {
  enterpriseId: text('enterprise_id').primaryKey(),
  entityId: text('entity_id').notNull(),
  ssoUrl: text('sso_url').notNull(),
  /** The public keys and fingerprints of the provider's certificates, as JSON. */
  certificates: text('certificates').notNull(),
  /** Null if the metadata were pasted. */
  metadataUrl: text('metadata_url'),
  updatedAt: text('updated_at').notNull(),
});

/** Assertions that were accepted. A row stays while the assertion could be sent again. */
export const samlAnswers = sqliteTable('saml_answers', {
  assertionHash: text('assertion_hash').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  requestId: text('request_id').notNull(),
  /** Null once the browser has redeemed it; so is the identity. */
  codeHash: text('code_hash'),
  identity: text('identity'),
  expiresAt: integer('expires_at').notNull(),
});

export const enterpriseDomains = sqliteTable('enterprise_domains', {
  domain: text('domain').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  provenAt: text('proven_at').notNull(),
});

export const mcpServers = sqliteTable('mcp_servers', {
  id: text('id').primaryKey(),
  enterpriseId: text('enterprise_id').notNull(),
  ownerId: text('owner_id').notNull(),
  name: text('name').notNull(),
  registryId: text('registry_id'),
  record: text('record').notNull(),
  revision: integer('revision').notNull(),
  createdAt: text('created_at').notNull(),
  updatedAt: text('updated_at').notNull(),
});

/** What an enterprise's admin says about all its members' servers, as JSON; no row: nothing. */
export const mcpRules = sqliteTable('mcp_rules', {
  enterpriseId: text('enterprise_id').primaryKey(),
  rules: text('rules').notNull(),
  updatedAt: text('updated_at').notNull(),
});

/** Configurations that the control plane itself derived from a registry entry, by their hash (decision 0096). */
export const mcpDerivations = sqliteTable(
  'mcp_derivations',
  { serverId: text('server_id').notNull(), hash: text('hash').notNull() },
  (table) => [primaryKey({ columns: [table.serverId, table.hash] })],
);

export const mcpServerRevisions = sqliteTable(
  'mcp_server_revisions',
  {
    serverId: text('server_id').notNull(),
    revision: integer('revision').notNull(),
    record: text('record').notNull(),
    changedBy: text('changed_by').notNull(),
    createdAt: text('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.serverId, table.revision] })],
);

/** The vault paths that a server refers to. */
export const mcpReferences = sqliteTable(
  'mcp_references',
  { serverId: text('server_id').notNull(), ownerId: text('owner_id').notNull(), path: text('path').notNull() },
  (table) => [primaryKey({ columns: [table.serverId, table.path] })],
);

export const mcpHealth = sqliteTable(
  'mcp_health',
  {
    serverId: text('server_id').notNull(),
    sidecarId: text('sidecar_id').notNull(),
    state: text('state', { enum: [...MCP_HEALTH_STATES] }).notNull(),
    lastError: text('last_error'),
    checkedAt: text('checked_at').notNull(),
    /** JSON: hosts that its container was refused on that machine. */
    refusedHosts: text('refused_hosts').notNull().default('[]'),
  },
  (table) => [primaryKey({ columns: [table.serverId, table.sidecarId] })],
);

/** The tools and prompts of MCP servers, each form of each one. */
export const mcpTools = sqliteTable(
  'mcp_tools',
  {
    serverId: text('server_id').notNull(),
    /** SHA-256 of the kind and the definition, in hex. */
    hash: text('hash').notNull(),
    kind: text('kind', { enum: [...REVIEWED_KINDS] })
      .notNull()
      .default('tool'),
    name: text('name').notNull(),
    /** Canonical JSON. */
    definition: text('definition').notNull(),
    state: text('state', { enum: [...MCP_TOOL_STATES] }).notNull(),
    seenAt: text('seen_at').notNull(),
    reviewedBy: text('reviewed_by'),
    reviewedAt: text('reviewed_at'),
  },
  (table) => [primaryKey({ columns: [table.serverId, table.hash] })],
);

export const mcpClients = sqliteTable('mcp_clients', {
  id: text('id').primaryKey(),
  kind: text('kind', { enum: ['registered', 'document'] }).notNull(),
  name: text('name').notNull(),
  /** JSON. */
  redirectUris: text('redirect_uris').notNull(),
  createdAt: text('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
});

export const mcpConnections = sqliteTable('mcp_connections', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  /** The provider of the connecting user's sign-in. */
  provider: text('provider').notNull(),
  clientId: text('client_id').notNull(),
  clientName: text('client_name').notNull(),
  redirectOrigin: text('redirect_origin').notNull(),
  createdAt: text('created_at').notNull(),
  lastUsedAt: text('last_used_at'),
  expiresAt: integer('expires_at').notNull(),
  revokedAt: text('revoked_at'),
  /** Whether the person agreed to the operations of connectors too. */
  hasOperations: integer('has_operations', { mode: 'boolean' }).notNull(),
  connectedBy: text('connected_by', { enum: [...CONNECTED_BY] }).notNull(),
});

/** Assertions of providers that were used. A row stays while the assertion could be sent again. */
export const mcpAssertions = sqliteTable('mcp_assertions', {
  /** SHA-256 over the issuer and the assertion's id. */
  assertionHash: text('assertion_hash').primaryKey(),
  expiresAt: integer('expires_at').notNull(),
});

/** Clients that their person has disconnected, and that the provider must not connect again. */
export const mcpDisconnected = sqliteTable(
  'mcp_disconnected',
  { userId: text('user_id').notNull(), clientId: text('client_id').notNull() },
  (table) => [primaryKey({ columns: [table.userId, table.clientId] })],
);

export const mcpCodes = sqliteTable('mcp_codes', {
  codeHash: text('code_hash').primaryKey(),
  connectionId: text('connection_id').notNull(),
  redirectUri: text('redirect_uri').notNull(),
  challenge: text('challenge').notNull(),
  validUntil: integer('valid_until').notNull(),
  expiresAt: integer('expires_at').notNull(),
  usedAt: text('used_at'),
});

export const mcpRefreshTokens = sqliteTable('mcp_refresh_tokens', {
  tokenHash: text('token_hash').primaryKey(),
  connectionId: text('connection_id').notNull(),
  expiresAt: integer('expires_at').notNull(),
  usedAt: text('used_at'),
});

export const registryMirrors = sqliteTable('registry_mirrors', {
  id: integer('id').primaryKey(),
  url: text('url').notNull(),
  lease: text('lease'),
  leaseUntilMs: integer('lease_until_ms').notNull().default(0),
  notBeforeMs: integer('not_before_ms').notNull().default(0),
  crawl: integer('crawl').notNull().default(0),
  since: text('since'),
  beganAt: text('began_at'),
  cursor: text('cursor'),
  pages: integer('pages').notNull().default(0),
  syncedAt: text('synced_at'),
  crawledAt: text('crawled_at'),
  change: integer('change').notNull().default(0),
});

export const registryServers = sqliteTable(
  'registry_servers',
  {
    registryId: integer('registry_id').notNull(),
    name: text('name').notNull(),
    description: text('description').notNull(),
    searchText: text('search_text').notNull().default(''),
    facets: text('facets').notNull(),
    state: text('state').notNull(),
    updatedAt: text('updated_at').notNull(),
    crawl: integer('crawl').notNull(),
    change: integer('change').notNull(),
  },
  (table) => [primaryKey({ columns: [table.registryId, table.name] })],
);

export const registryDocuments = sqliteTable(
  'registry_documents',
  { registryId: integer('registry_id').notNull(), name: text('name').notNull(), document: text('document').notNull() },
  (table) => [primaryKey({ columns: [table.registryId, table.name] })],
);

/** The state of sending audit heads; see the schema for the columns. */
export const auditAnchors = sqliteTable(
  'audit_anchors',
  {
    enterpriseId: text('enterprise_id').notNull(),
    way: text('way', { enum: [...ANCHOR_WAYS] }).notNull(),
    period: text('period').notNull().default(''),
    sentAt: text('sent_at'),
    holder: text('holder').notNull(),
    heldUntil: text('held_until').notNull(),
    failures: integer('failures').notNull().default(0),
    failedAt: text('failed_at'),
    problem: text('problem'),
  },
  (table) => [primaryKey({ columns: [table.enterpriseId, table.way] })],
);
