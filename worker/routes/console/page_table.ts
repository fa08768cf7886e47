import type { OpenAPIHono } from '@hono/zod-openapi';
import { getFindPage } from './console_find.ts';
import { CALLBACK_PATH } from '../../services/oauth/oauth_authorisation.ts';
import type { AppEnv } from '../http/app_env.ts';
import { getAsset } from '../http/asset_reply.ts';
import { finishProvider, openProvider, openSso } from '../auth/auth_flow.ts';
import { beginLink, getIdentitiesPage, submitLink, submitRemoval } from '../auth/auth_identities.ts';
import { getSignIn, getSignUp, postLogout, submitCode, submitSignIn, submitSignUp } from '../auth/auth_pages.ts';
import { finishAuthorisationPage, openAuthorisation } from '../api/connector_authorisation.ts';
import { submitTheme } from './console_theme.ts';
import { getConnectorSpecSchema, SPEC_SCHEMA_PATH } from '../api/connectors.ts';
import type { PageEntry } from './console.ts';
import { isAtConsole } from './console_host.ts';
import { getApprovalPage, getApprovalsPage, submitDecision, submitRevocation } from './console_approvals.ts';
import {
  getAudit,
  getAuditEventPage,
  getAuditExport,
  getVerification,
  getOverview,
  getReport,
  getSessionPage,
  getSinksPage,
  submitForgottenView,
  submitView,
} from './console_audit.ts';
import { DEPENDENCY_PAGES } from './audit/console_dependencies.ts';
import { SESSION_PAGES } from './audit/console_sessions.ts';
import { PUSH_PAGES } from './people/console_push.ts';
import { MERGE_PAGES } from './people/console_merge.ts';
import { RETENTION_PAGES } from './console_retention.ts';
import { getBindingEdit, submitBindingEdit } from './console_binding_edit.ts';
import {
  clientCertificateRemoval,
  getClientCertificatesPage,
  submitClientCertificate,
} from './hosts/console_client_certificates.ts';
import { getTunnelHostsPage, submitTunnelHost, tunnelHostRemoval } from './hosts/console_tunnel_hosts.ts';
import { bindingDeletion, getBinding, getBindings, getNewBinding, submitBinding } from './console_bindings.ts';
import { CONSOLE_ACCESS_PAGES } from './console_access_pages.ts';
import { getNewSecret, getSecretsPage, secretDeletion, submitSecret } from './console_secrets.ts';
import { getNewSource, getSource, submitSource, submitSourceTest } from './console_sources.ts';
import { getMarketplace, getMarketplaceEntry, getMarketplaceIcon } from './console_marketplace.ts';
import { getMcpEdit, getNewMcpServer, submitMcpEdit, submitNewMcpServer } from './console_mcp_new_and_edit.ts';
import { getMcpSignIn, mcpSignInForgetting, submitMcpSignIn } from './console_mcp_sign_in.ts';
import { getMcpInstall, submitMcpInstall } from './console_mcp_install.ts';
import {
  getMcpClientsPage,
  getMcpConnect,
  getMcpCredentials,
  getMcpServerPage,
  getMcpServersPage,
  mcpCredentialDeletion,
  mcpServerDeletion,
  submitEnabled,
  submitMcpCredentials,
  submitTools,
} from './console_mcp_servers.ts';
import { getMcpRulesPage, submitMcpRules } from './console_mcp_rules.ts';
import { getMcpToolsPage, submitMcpToolChoice, submitMcpToolsAccept } from './console_mcp_tools.ts';
import { askMcpRollback, getMcpUpgradePage, submitMcpRollback, submitMcpUpgrade } from './console_mcp_versions.ts';
import { DEPARTURE_PAGES } from './console_departure.ts';
import { DIRECTORY_PAGES } from './people/console_directory.ts';
import { JOIN_PAGES } from './people/console_join_requests.ts';
import { APPROVAL_RULE_PAGES } from './people/console_approval_rules.ts';
import { GROUP_PAGES } from './console_groups.ts';
import { getService, getServices, submitService, submitServiceTest } from './console_services.ts';
import { SHARE_PAGES } from './console_shares.ts';
import { INVITATION_PAGES } from './console_invitations.ts';
import { getSamlMetadata, receiveSamlResponse } from '../auth/auth_saml.ts';
import { getDevicePage, postDeviceDecision, postDevicePage } from '../auth/device.ts';
import { getDocs, getOpenApi, openSignInLink, showConsoleHint } from './pages.ts';

/**
 * Routes that a local control plane serves under every host name. They read and set no cookie. A callback redirects to
 * the console.
 */
const AT_EVERY_NAME = new Set([
  '/assets/{file}',
  '/docs',
  '/openapi.json',
  SPEC_SCHEMA_PATH,
  CALLBACK_PATH,
  '/auth/{provider}/callback',
  '/auth/{provider}/acs',
  '/auth/{provider}/metadata',
]);

/** What browsers request: pages, forms and static files. A console page is added here and in pages/navigation.ts. */
export function pageTable(app: OpenAPIHono<AppEnv>): readonly PageEntry[] {
  return pagesOf(app).map((entry) => {
    const [method, path, answer] = entry;
    return AT_EVERY_NAME.has(path) ? entry : [method, path, (c) => (isAtConsole(c) ? answer(c) : showConsoleHint(c))];
  });
}

/** Secrets, bindings, approvals and the audit log. */
const VAULT_PAGES: readonly PageEntry[] = [
  ['get', '/', getOverview],
  ['post', '/theme', submitTheme],
  ['get', '/find', getFindPage],
  ['get', '/approvals', getApprovalsPage],
  ['get', '/approvals/{id}', getApprovalPage],
  ['post', '/approvals/{id}', submitDecision],
  ['post', '/approval-grants/{id}/revoke', submitRevocation],
  ...APPROVAL_RULE_PAGES,
  ['get', '/audit', getAudit],
  ['post', '/audit/views', submitView],
  ['post', '/audit/views/forget', submitForgottenView],
  ['get', '/audit/verify', getVerification],
  ['get', '/audit/sinks', getSinksPage],
  ['get', '/audit/export', getAuditExport],
  ...RETENTION_PAGES,
  ...SESSION_PAGES,
  ...DEPENDENCY_PAGES,
  ['get', '/audit/sessions/{id}', getSessionPage],
  ['get', '/audit/{id}', getAuditEventPage],
  ['get', '/report', getReport],
  ['get', '/secrets', getSecretsPage],
  ['get', '/secrets/new', getNewSecret],
  ['post', '/secrets', submitSecret],
  ['get', '/secrets/sources/new', getNewSource],
  ['post', '/secrets/sources', submitSource],
  ['get', '/secrets/source', getSource],
  ['post', '/secrets/source', submitSourceTest],
  ['get', '/secrets/delete', secretDeletion.ask],
  ['post', '/secrets/delete', secretDeletion.submit],
  ['get', '/bindings', getBindings],
  ['get', '/bindings/new', getNewBinding],
  ['post', '/bindings', submitBinding],
  ['get', '/client-certificates', getClientCertificatesPage],
  ['post', '/client-certificates', submitClientCertificate],
  ['get', '/client-certificates/{id}/delete', clientCertificateRemoval.ask],
  ['post', '/client-certificates/{id}/delete', clientCertificateRemoval.submit],
  ['get', '/tunnel-hosts', getTunnelHostsPage],
  ['post', '/tunnel-hosts', submitTunnelHost],
  ['get', '/tunnel-hosts/{id}/delete', tunnelHostRemoval.ask],
  ['post', '/tunnel-hosts/{id}/delete', tunnelHostRemoval.submit],
  ['get', '/bindings/{id}', getBinding],
  ['get', '/bindings/{id}/edit', getBindingEdit],
  ['post', '/bindings/{id}/edit', submitBindingEdit],
  ['get', '/bindings/{id}/delete', bindingDeletion.ask],
  ['post', '/bindings/{id}/delete', bindingDeletion.submit],
];

const SERVICE_PAGES: readonly PageEntry[] = [
  ['get', '/services', getServices],
  ['get', '/services/{name}', getService],
  ['post', '/services/{name}', submitService],
  ['post', '/services/{name}/test', submitServiceTest],
];

const MCP_PAGES: readonly PageEntry[] = [
  ['get', '/marketplace', getMarketplace],
  ['get', '/marketplace/{registryId+}', getMarketplaceEntry],
  ['get', '/marketplace-icons/{registryId+}', getMarketplaceIcon],
  ['get', '/mcp-rules', getMcpRulesPage],
  ['post', '/mcp-rules', submitMcpRules],
  ['get', '/mcp-servers', getMcpServersPage],
  ['get', '/mcp-servers/install', getMcpInstall],
  ['post', '/mcp-servers/install', submitMcpInstall],
  ['get', '/mcp-servers/clients', getMcpClientsPage],
  ['get', '/mcp-servers/new', getNewMcpServer],
  ['post', '/mcp-servers', submitNewMcpServer],
  ['get', '/mcp-servers/{id}', getMcpServerPage],
  ['get', '/mcp-servers/{id}/edit', getMcpEdit],
  ['post', '/mcp-servers/{id}/edit', submitMcpEdit],
  ['get', '/mcp-servers/{id}/authorize', getMcpSignIn],
  ['post', '/mcp-servers/{id}/authorize', submitMcpSignIn],
  ['get', '/mcp-servers/{id}/authorize/forget', mcpSignInForgetting.ask],
  ['post', '/mcp-servers/{id}/authorize/forget', mcpSignInForgetting.submit],
  ['post', '/mcp-servers/{id}/enabled', submitEnabled],
  ['post', '/mcp-servers/{id}/tools', submitTools],
  ['get', '/mcp-servers/{id}/tools', getMcpToolsPage],
  ['post', '/mcp-servers/{id}/tools/accept', submitMcpToolsAccept],
  ['post', '/mcp-servers/{id}/tools/choice', submitMcpToolChoice],
  ['get', '/mcp-servers/{id}/delete', mcpServerDeletion.ask],
  ['post', '/mcp-servers/{id}/delete', mcpServerDeletion.submit],
  ['get', '/mcp-servers/{id}/credentials', getMcpCredentials],
  ['post', '/mcp-servers/{id}/credentials', submitMcpCredentials],
  ['get', '/mcp-servers/{id}/credentials/delete', mcpCredentialDeletion.ask],
  ['post', '/mcp-servers/{id}/credentials/delete', mcpCredentialDeletion.submit],
  ['get', '/mcp-servers/{id}/connect', getMcpConnect],
  ['get', '/mcp-servers/{id}/upgrade', getMcpUpgradePage],
  ['post', '/mcp-servers/{id}/upgrade', submitMcpUpgrade],
  ['get', '/mcp-servers/{id}/rollback', askMcpRollback],
  ['post', '/mcp-servers/{id}/rollback', submitMcpRollback],
];

/** Where people and programs sign in. */
const SIGN_IN_PAGES: readonly PageEntry[] = [
  ['get', '/identities', getIdentitiesPage],
  ['post', '/identities/link', submitLink],
  ['post', '/identities/remove', submitRemoval],
  ['get', '/device', getDevicePage],
  ['post', '/device', postDevicePage],
  ['post', '/device/decide', postDeviceDecision],
  ['get', '/auth/connectors/{id}/authorize', openAuthorisation],
  ['get', CALLBACK_PATH, finishAuthorisationPage],
  ['get', '/sign-in', getSignIn],
  ['post', '/sign-in', submitSignIn],
  ['get', '/sign-up', getSignUp],
  ['post', '/sign-up', submitSignUp],
  ['post', '/sign-up/code', submitCode],
  ['post', '/auth/logout', postLogout],
  ['get', '/auth/link/{code}', openSignInLink],
  ['get', '/auth/sso', openSso],
  ['get', '/auth/{provider}/login', openProvider],
  ['get', '/auth/{provider}/callback', finishProvider],
  ['post', '/auth/{provider}/acs', receiveSamlResponse],
  ['get', '/auth/{provider}/metadata', getSamlMetadata],
  ['post', '/auth/{provider}/link', beginLink],
];

function pagesOf(app: OpenAPIHono<AppEnv>): readonly PageEntry[] {
  return [
    ...VAULT_PAGES,
    ...SERVICE_PAGES,
    ...MCP_PAGES,
    ...INVITATION_PAGES,
    ...JOIN_PAGES,
    ...MERGE_PAGES,
    ...DEPARTURE_PAGES,
    ...GROUP_PAGES,
    ...DIRECTORY_PAGES,
    ...SHARE_PAGES,
    ...CONSOLE_ACCESS_PAGES,
    ...SIGN_IN_PAGES,
    ['get', '/assets/{file}', (c) => getAsset(c)],
    ...PUSH_PAGES,
    ['get', '/docs', getDocs(app)],
    ['get', '/openapi.json', getOpenApi(app)],
    ['get', SPEC_SCHEMA_PATH, getConnectorSpecSchema],
  ];
}

/** The path in the router's syntax. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1').replaceAll(/\{(\w+)\+\}/g, ':$1{[^]+}');
}
