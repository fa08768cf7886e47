import { OpenAPIHono } from '@hono/zod-openapi';
import { deleteAccount, getAccountDeletion, getHealth, getMe, postSignInLink } from './routes/api/account.ts';
import { deleteApprovalRule, getApprovalRules, postApprovalRule } from './routes/api/approval_rules.ts';
import {
  deleteGrant,
  getApproval,
  getApprovals,
  getGrants,
  getView,
  postDecision,
  postView,
} from './routes/api/approvals.ts';
import type { AppContext, AppEnv, Log } from './routes/http/app_env.ts';
import type { ApiLimits } from '../shared/model/limits.ts';
import type { BindingTemplate } from '../shared/wire/binding_template.ts';
import type { ReadyService } from '../shared/wire/ready_services.ts';
import type { Assets } from './pages/frame/assets.ts';
import { makeOnce } from './routes/console/once.ts';
import { deleteIdentity, getIdentities } from './routes/auth/auth_identities.ts';
import { getProviders } from './routes/auth/auth_methods.ts';
import { postLogin, postSignup, postVerify } from './routes/auth/auth_password.ts';
import {
  getAuditAnchors,
  getAuditChain,
  getAuditEvents,
  getAuditHeads,
  getAuditStatement,
  getAuditStream,
  getAuditVerification,
  postAuditHeadsCheck,
  postAuditPrune,
} from './routes/api/audit_events.ts';
import { describeBrowserOperations } from './routes/auth/browser_operations.ts';
import { limitBody } from './routes/http/body_limit.ts';
import { compressReplies } from './routes/http/compress_replies.ts';
import { postAuthorisation } from './routes/api/connector_authorisation.ts';
import {
  deleteConnector,
  getConnectorDeletion,
  deleteConnectorCredential,
  getConnector,
  getConnectors,
  postConnector,
  postConnectorRevocation,
  postConnectorRun,
  postConnectorValidation,
  putConnectorCredential,
} from './routes/api/connectors.ts';
import { deleteSession, getSessions } from './routes/auth/browser_sessions_api.ts';
import {
  deleteEnterprise,
  getEnterpriseDeletion,
  getEnterprise,
  getEnterprises,
  postEnterpriseSignIn,
  putEnterprise,
} from './routes/api/enterprise.ts';
import { getDependencies } from './routes/api/dependencies.ts';
import { getUsage } from './routes/api/usage.ts';
import { errorReply, failureReply, invalidInput } from './routes/http/error_reply.ts';
import { postDeviceCode, postDeviceToken, postRefresh, postRevoke } from './routes/auth/device.ts';
import { useFieldMessages } from './routes/console/field_messages.ts';
import {
  deleteClientCertificate,
  getClientCertificates,
  postClientCertificate,
} from './routes/api/client_certificates.ts';
import { deleteTunnelHost, getTunnelHosts, postTunnelHost } from './routes/api/tunnel_hosts.ts';
import {
  deleteHostBinding,
  getHostBinding,
  getHostBindingDeletion,
  getHostBindings,
  postExplain,
  postHostBinding,
  putHostBinding,
} from './routes/api/host_bindings.ts';
import { getKeySet } from './routes/auth/jwks.ts';
import {
  deleteMcpAuthorization,
  deleteMcpCredential,
  deleteMcpServer,
  getMcpServerDeletion,
  getMcpRevisions,
  getMcpServer,
  getMcpServers,
  postMcpAuthorization,
  postMcpCredential,
  postMcpRollback,
  getMcpTools,
  postMcpToolsAccept,
  postMcpServer,
  putMcpServer,
} from './routes/api/mcp_servers.ts';
import {
  getMarketplaceReadme,
  getMarketplaceServer,
  getMarketplaceServers,
  getMcpUpgrade,
  postMarketplaceInstall,
  postMarketplacePreview,
  postMcpUpgrade,
} from './routes/api/marketplace.ts';
import { getMcpRules, postMcpRulesCheck, putMcpRules } from './routes/api/mcp_rules.ts';
import { deleteMcpClient, getMcpClients } from './routes/api/mcp_clients.ts';
import { describeMcp } from './routes/mcp/describe_mcp.ts';
import { CROSS_ORIGIN_PATHS, MCP_ROUTES } from './routes/mcp/mcp_routes.ts';
import { allowAnyOrigin } from './routes/mcp/public_server.ts';
import { MCP_PATH } from '../shared/wire/mcp/mcp_clients.ts';
import {
  deleteAuditSink,
  getAuditSinkDeadLetters,
  getAuditSinks,
  postAuditSink,
  postAuditSinkEnable,
  postAuditSinkReplay,
  postAuditSinkRotate,
} from './routes/api/audit_sinks.ts';
import {
  deleteGroup,
  deleteGroupMember,
  getGroup,
  getGroupMembers,
  getGroups,
  postGroup,
  putGroup,
  putGroupMember,
} from './routes/api/groups.ts';
import { deleteShare, getShares, postShare, postShareAcceptance, postShareRefusal } from './routes/api/shares.ts';
import {
  deleteJoinRequest,
  getJoinOffers,
  getJoinRequests,
  postJoinAcceptance,
  postJoinRefusal,
  postJoinRequest,
} from './routes/api/join_requests.ts';
import { getMerge, postMerge } from './routes/api/merges.ts';
import { deleteInvitation, getInvitations, postInvitation } from './routes/api/invitations.ts';
import { deleteMember, getDeparture, getMembers, putMember } from './routes/api/members.ts';
import {
  answerLocalNamesOnly,
  demandHttps,
  knowClient,
  logRequests,
  nameRequest,
  provide,
  sendSafeHeaders,
} from './routes/http/middleware.ts';
import { formPages, type RouteName } from './routes/http/form_pages.ts';
import { answerNotFound } from './routes/http/not_found.ts';
import { describeAccess, type Method, mount, type Operation } from './routes/http/operation.ts';
import { pageTable, routerPath } from './routes/console/page_table.ts';
import {
  deletePendingLogin,
  deletePendingLogins,
  getPendingLogin,
  postPendingLogin,
  postStoredLogin,
} from './routes/api/pending_logins.ts';
import { getReady } from './routes/api/ready.ts';
import {
  getSecretSources,
  postSecretSource,
  postSecretSourceDryRun,
  postSecretSourceTest,
} from './routes/api/secret_sources.ts';
import { deleteSecret, getSecretDeletion, getSecrets, postSecret, postSecretCheck } from './routes/api/secrets.ts';
import {
  getSidecarApproval,
  getSidecarAuditHeads,
  getSidecarPendingLogin,
  getSnapshot,
  postCredentials,
  postLeave,
  postEvents,
  postMcpHealth,
  postMcpTools,
  postSidecarApproval,
  postSidecarApprovalView,
  postSidecarPendingLogin,
  postUnsealed,
} from './routes/api/sidecar_channel.ts';
import { deleteSidecar, getSidecars, postSidecar } from './routes/api/sidecars.ts';
import {
  deleteManagedBinding,
  deleteManagedSecret,
  deleteServiceAccount,
  getManagedBindings,
  getManagedSecrets,
  getServiceAccount,
  getServiceAccounts,
  postJoin,
  postManagedBinding,
  postManagedSecret,
  postServiceAccount,
  putServiceAccount,
} from './routes/api/service_accounts.ts';
import { deleteScimToken, getScimTokens, postScimToken } from './routes/api/scim_tokens.ts';
import { describeScim } from './routes/scim/describe_scim.ts';
import { SCIM_ROUTES } from './routes/scim/scim_routes.ts';
import { deleteToken, getTokens, postToken } from './routes/api/tokens.ts';
import { postMovedValue, postVaultMove } from './routes/api/vault_moves.ts';
import type { ProgramContext } from './installation/program_context.ts';

/** The route table. Each operation declares who may call it; `{name+}` also matches slashes. */
const ROUTES: readonly (readonly [Method, string, Operation])[] = [
  ['get', '/v1/health', getHealth],
  ['get', '/v1/ready', getReady],
  ['get', '/v1/me', getMe],
  ['delete', '/v1/me', deleteAccount],
  ['get', '/v1/me/deletion', getAccountDeletion],
  ['get', '/v1/enterprise', getEnterprise],
  ['put', '/v1/enterprise', putEnterprise],
  ['delete', '/v1/enterprise', deleteEnterprise],
  ['get', '/v1/enterprise/deletion', getEnterpriseDeletion],
  ['get', '/v1/usage', getUsage],
  ['get', '/v1/dependencies', getDependencies],
  ['get', '/v1/enterprises', getEnterprises],
  ['post', '/v1/enterprises/{id}/sign-in', postEnterpriseSignIn],
  ['get', '/v1/enterprises/{id}/merge', getMerge],
  ['post', '/v1/enterprises/{id}/merge', postMerge],
  ['post', '/v1/sign-in-links', postSignInLink],
  ['get', '/auth/providers', getProviders],
  ['post', '/auth/signup', postSignup],
  ['post', '/auth/verify', postVerify],
  ['post', '/auth/login', postLogin],

  ['get', '/v1/members', getMembers],
  ['put', '/v1/members/{id}', putMember],
  ['delete', '/v1/members/{id}', deleteMember],
  ['get', '/v1/members/{id}/departure', getDeparture],
  ['post', '/v1/invitations', postInvitation],
  ['get', '/v1/invitations', getInvitations],
  ['delete', '/v1/invitations/{id}', deleteInvitation],
  ['get', '/v1/join-offers', getJoinOffers],
  ['post', '/v1/join-requests', postJoinRequest],
  ['get', '/v1/join-requests', getJoinRequests],
  ['delete', '/v1/join-requests/{id}', deleteJoinRequest],
  ['post', '/v1/join-requests/{id}/accept', postJoinAcceptance],
  ['post', '/v1/join-requests/{id}/decline', postJoinRefusal],
  ['get', '/v1/groups', getGroups],
  ['post', '/v1/groups', postGroup],
  ['get', '/v1/groups/{id}', getGroup],
  ['put', '/v1/groups/{id}', putGroup],
  ['delete', '/v1/groups/{id}', deleteGroup],
  ['get', '/v1/groups/{id}/members', getGroupMembers],
  ['put', '/v1/groups/{id}/members/{user}', putGroupMember],
  ['delete', '/v1/groups/{id}/members/{user}', deleteGroupMember],
  ['get', '/v1/shares', getShares],
  ['post', '/v1/shares', postShare],
  ['delete', '/v1/shares/{id}', deleteShare],
  ['post', '/v1/shares/{id}/accept', postShareAcceptance],
  ['post', '/v1/shares/{id}/decline', postShareRefusal],
  ['post', '/v1/service-accounts', postServiceAccount],
  ['get', '/v1/service-accounts', getServiceAccounts],
  ['get', '/v1/service-accounts/{id}', getServiceAccount],
  ['put', '/v1/service-accounts/{id}', putServiceAccount],
  ['delete', '/v1/service-accounts/{id}', deleteServiceAccount],
  ['post', '/v1/service-accounts/{id}/secrets', postManagedSecret],
  ['get', '/v1/service-accounts/{id}/secrets', getManagedSecrets],
  ['delete', '/v1/service-accounts/{id}/secrets/{path+}', deleteManagedSecret],
  ['post', '/v1/service-accounts/{id}/host-bindings', postManagedBinding],
  ['get', '/v1/service-accounts/{id}/host-bindings', getManagedBindings],
  ['delete', '/v1/service-accounts/{id}/host-bindings/{binding}', deleteManagedBinding],
  ['post', '/v1/tokens', postToken],
  ['get', '/v1/tokens', getTokens],
  ['delete', '/v1/tokens/{id}', deleteToken],
  ['post', '/v1/scim-tokens', postScimToken],
  ['get', '/v1/scim-tokens', getScimTokens],
  ['delete', '/v1/scim-tokens/{id}', deleteScimToken],
  ['get', '/v1/identities', getIdentities],
  ['delete', '/v1/identities/{id}', deleteIdentity],
  ['get', '/v1/sessions', getSessions],
  ['delete', '/v1/sessions/{id}', deleteSession],
  ['get', '/.well-known/jwks.json', getKeySet],
  ['post', '/auth/device/code', postDeviceCode],
  ['post', '/auth/device/token', postDeviceToken],
  ['post', '/auth/join', postJoin],
  ['post', '/auth/refresh', postRefresh],
  ['post', '/auth/revoke', postRevoke],

  ['post', '/v1/secrets', postSecret],
  ['get', '/v1/secrets', getSecrets],
  ['post', '/v1/secrets/check', postSecretCheck],
  ['get', '/v1/secrets/{path+}/deletion', getSecretDeletion],
  ['delete', '/v1/secrets/{path+}', deleteSecret],

  ['post', '/v1/vault-moves', postVaultMove],
  ['post', '/v1/vault-moves/values', postMovedValue],

  ['post', '/v1/secret-sources', postSecretSource],
  ['get', '/v1/secret-sources', getSecretSources],
  ['post', '/v1/secret-sources/test', postSecretSourceTest],
  ['post', '/v1/secret-sources/dry-run', postSecretSourceDryRun],

  ['post', '/v1/host-bindings', postHostBinding],
  ['get', '/v1/host-bindings', getHostBindings],
  ['post', '/v1/host-bindings/explain', postExplain],
  ['get', '/v1/host-bindings/{id}', getHostBinding],
  ['put', '/v1/host-bindings/{id}', putHostBinding],
  ['get', '/v1/host-bindings/{id}/deletion', getHostBindingDeletion],
  ['delete', '/v1/host-bindings/{id}', deleteHostBinding],

  ['post', '/v1/tunnel-hosts', postTunnelHost],
  ['get', '/v1/tunnel-hosts', getTunnelHosts],
  ['delete', '/v1/tunnel-hosts/{id}', deleteTunnelHost],

  ['post', '/v1/client-certificates', postClientCertificate],
  ['get', '/v1/client-certificates', getClientCertificates],
  ['delete', '/v1/client-certificates/{id}', deleteClientCertificate],

  ['post', '/v1/connectors', postConnector],
  ['get', '/v1/connectors', getConnectors],
  ['post', '/v1/connectors/validate', postConnectorValidation],
  ['get', '/v1/connectors/{id}', getConnector],
  ['get', '/v1/connectors/{id}/deletion', getConnectorDeletion],
  ['delete', '/v1/connectors/{id}', deleteConnector],
  ['put', '/v1/connectors/{id}/credential', putConnectorCredential],
  ['delete', '/v1/connectors/{id}/credential', deleteConnectorCredential],
  ['post', '/v1/connectors/{id}/credential/revoke', postConnectorRevocation],
  ['post', '/v1/connectors/{id}/credential/authorize', postAuthorisation],
  ['post', '/v1/connector-operations/run', postConnectorRun],

  ['post', '/v1/pending-logins', postPendingLogin],
  ['get', '/v1/pending-logins/{id}', getPendingLogin],
  ['delete', '/v1/pending-logins', deletePendingLogins],
  ['delete', '/v1/pending-logins/{id}', deletePendingLogin],
  ['post', '/v1/pending-logins/{id}/store', postStoredLogin],

  ['get', '/v1/mcp-rules', getMcpRules],
  ['put', '/v1/mcp-rules', putMcpRules],
  ['post', '/v1/mcp-rules/check', postMcpRulesCheck],
  ['post', '/v1/mcp-servers', postMcpServer],
  ['get', '/v1/mcp-servers', getMcpServers],
  ['get', '/v1/mcp-servers/{id}', getMcpServer],
  ['put', '/v1/mcp-servers/{id}', putMcpServer],
  ['get', '/v1/mcp-servers/{id}/deletion', getMcpServerDeletion],
  ['delete', '/v1/mcp-servers/{id}', deleteMcpServer],
  ['post', '/v1/mcp-servers/{id}/credentials', postMcpCredential],
  ['delete', '/v1/mcp-servers/{id}/credentials/{name}', deleteMcpCredential],
  ['post', '/v1/mcp-servers/{id}/authorize', postMcpAuthorization],
  ['delete', '/v1/mcp-servers/{id}/authorize', deleteMcpAuthorization],
  ['get', '/v1/mcp-servers/{id}/revisions', getMcpRevisions],
  ['post', '/v1/mcp-servers/{id}/rollback', postMcpRollback],
  ['get', '/v1/mcp-servers/{id}/tools', getMcpTools],
  ['post', '/v1/mcp-servers/{id}/tools/accept', postMcpToolsAccept],
  ['get', '/v1/mcp-servers/{id}/upgrade', getMcpUpgrade],
  ['post', '/v1/mcp-servers/{id}/upgrade', postMcpUpgrade],

  ['get', '/v1/mcp-clients', getMcpClients],
  ['delete', '/v1/mcp-clients/{id}', deleteMcpClient],

  ['get', '/v1/marketplace/servers', getMarketplaceServers],
  ['get', '/v1/marketplace/servers/{registryId+}', getMarketplaceServer],
  ['get', '/v1/marketplace/readmes/{registryId+}', getMarketplaceReadme],
  ['post', '/v1/marketplace/servers/{registryId+}/preview', postMarketplacePreview],
  ['post', '/v1/marketplace/servers/{registryId+}/install', postMarketplaceInstall],

  ['get', '/v1/approvals', getApprovals],
  ['get', '/v1/approvals/{id}', getApproval],
  ['post', '/v1/approvals/{id}/decide', postDecision],
  ['post', '/v1/approvals/{id}/views', postView],
  ['get', '/v1/approvals/{id}/views/{view}', getView],
  ['get', '/v1/approval-rules', getApprovalRules],
  ['post', '/v1/approval-rules', postApprovalRule],
  ['delete', '/v1/approval-rules/{id}', deleteApprovalRule],
  ['get', '/v1/approval-grants', getGrants],
  ['delete', '/v1/approval-grants/{id}', deleteGrant],

  ['get', '/v1/audit-events', getAuditEvents],
  ['get', '/v1/audit-events/stream', getAuditStream],
  ['get', '/v1/audit-events/verify', getAuditVerification],
  ['get', '/v1/audit-events/statement', getAuditStatement],
  ['get', '/v1/audit-events/chains/{id}', getAuditChain],
  ['get', '/v1/audit-events/heads', getAuditHeads],
  ['get', '/v1/audit-events/heads/anchors', getAuditAnchors],
  ['post', '/v1/audit-events/heads/check', postAuditHeadsCheck],
  ['post', '/v1/audit-events/prune', postAuditPrune],

  ['post', '/v1/audit-sinks', postAuditSink],
  ['get', '/v1/audit-sinks', getAuditSinks],
  ['delete', '/v1/audit-sinks/{id}', deleteAuditSink],
  ['post', '/v1/audit-sinks/{id}/rotate', postAuditSinkRotate],
  ['post', '/v1/audit-sinks/{id}/enable', postAuditSinkEnable],
  ['get', '/v1/audit-sinks/{id}/dead-letters', getAuditSinkDeadLetters],
  ['post', '/v1/audit-sinks/{id}/replay', postAuditSinkReplay],

  ['post', '/v1/sidecars', postSidecar],
  ['get', '/v1/sidecars', getSidecars],
  ['delete', '/v1/sidecars/{id}', deleteSidecar],

  ['post', '/v1/sidecar/leave', postLeave],
  ['get', '/v1/sidecar/snapshot', getSnapshot],
  ['post', '/v1/sidecar/credentials', postCredentials],
  ['post', '/v1/sidecar/unsealed', postUnsealed],
  ['post', '/v1/sidecar/events', postEvents],
  ['get', '/v1/sidecar/audit-heads', getSidecarAuditHeads],
  ['post', '/v1/sidecar/mcp-health', postMcpHealth],
  ['post', '/v1/sidecar/mcp-tools', postMcpTools],
  ['post', '/v1/sidecar/approvals', postSidecarApproval],
  ['get', '/v1/sidecar/approvals/{id}', getSidecarApproval],
  ['post', '/v1/sidecar/approvals/{id}/views', postSidecarApprovalView],
  ['get', '/v1/sidecar/pending-logins/{id}', getSidecarPendingLogin],
  ['post', '/v1/sidecar/pending-logins/{id}', postSidecarPendingLogin],
];

/** A run has its own limits (design section 11). */
const maxBodyBytes = ({ maxApiBodyBytes, maxRunRequestBytes }: ApiLimits, path: string): number =>
  path === '/v1/connector-operations/run' || path === MCP_PATH ? maxRunRequestBytes : maxApiBodyBytes;

export interface AppOptions {
  /** The services of this program, or of this request if the runtime needs that. */
  readonly context: (c: AppContext) => ProgramContext | Promise<ProgramContext>;
  /** Static files of the pages. */
  readonly assets: Assets;
  /** The ready bindings of the catalog; none by default. They are loaded on first use. */
  readonly templates?: () => readonly BindingTemplate[];
  /** The well-known services of the catalog, in the same way. */
  readonly services?: () => readonly ReadyService[];
  readonly log: Log;
  /** Whether replies are compressed here; otherwise the platform does it. */
  readonly compresses?: boolean;
  /** The caller's address as the runtime reports it; never taken from a header, which anybody can send. */
  readonly clientAddress?: (c: AppContext) => string | null;
  /**
   * Whether a call came from another user of this machine, if the runtime can tell. In local mode such users cannot
   * sign in.
   */
  readonly isOtherUser?: (c: AppContext) => Promise<boolean>;
}

/** The control API and its pages: a request in, a response out, on every runtime. */
export function createApp(options: AppOptions): OpenAPIHono<AppEnv> {
  useFieldMessages();
  const app = new OpenAPIHono<AppEnv>({
    defaultHook: (result, c) => (result.success ? undefined : errorReply(c, invalidInput(result.target, result.error))),
  });
  const pages = pageTable(app);
  app.use(
    nameRequest,
    logRequests(options.log),
    compressReplies(options.compresses !== true),
    sendSafeHeaders,
    provide(options.context, {
      assets: options.assets,
      pageOfForm: formPages(pages.map(nameOf)),
      templates: makeOnce(options.templates ?? (() => [])),
      services: makeOnce(options.services ?? (() => [])),
    }),
    answerLocalNamesOnly,
    allowAnyOrigin(CROSS_ORIGIN_PATHS),
  );
  const client = {
    address: options.clientAddress ?? (() => null),
    isOtherUser: options.isOtherUser ?? (async () => false),
  };
  app.use(demandHttps, knowClient(client), limitBody(maxBodyBytes));
  describeAccess(app);
  describeBrowserOperations(app);
  describeMcp(app);
  describeScim(app);
  for (const [method, path, operation] of ROUTES) mount(app, method, path, operation);
  const others = [...pages, ...MCP_ROUTES, ...SCIM_ROUTES];
  for (const [method, path, answer] of others) app[method](routerPath(path), answer);
  app.notFound(answerNotFound([...ROUTES, ...others].map(nameOf)));
  app.onError((error, c) => failureReply(c, error, options.log));
  return app;
}

function nameOf([method, path]: readonly [string, string, unknown]): RouteName {
  return [method, path];
}
