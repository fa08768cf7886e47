import type { EverythingSeeded } from './console_seeds.ts';
import { HOSTILE, WEATHER } from './marketplace_entries.ts';
import type { WalkOptions } from './page_walk.ts';

/** A page of the walk. */
interface ConsolePage extends WalkOptions {
  readonly name: string;
  readonly path: (seeded: EverythingSeeded) => string;
  /** 200 by default. */
  readonly status?: number;
}

const page = (name: string, path: ConsolePage['path'], status = 200): ConsolePage => ({ name, path, status });
const install = `/mcp-servers/install?registry_id=${encodeURIComponent(WEATHER)}&version=1.2.2`;

/** The pages of the walk, by route: each with content, and its variants that differ much. */
export const CONSOLE_PAGES: Readonly<Record<string, readonly ConsolePage[]>> = {
  '/': [page('overview', () => '/')],
  '/find': [
    page('a search for everything', () => '/find'),
    page('a search with results', () => '/find?q=git'),
    page('a search without results', () => '/find?q=nothing-has-this-in-it'),
  ],
  '/approvals': [
    page('approvals', () => '/approvals'),
    page('all approvals', () => '/approvals?state=all'),
    page('grants', () => '/approvals?state=grants'),
  ],
  '/approvals/{id}': [page('an approval that is not there', () => '/approvals/apr_nothing', 404)],
  '/approval-rules': [page('rules about approvals', () => '/approval-rules')],
  '/audit': [
    page('audit', () => '/audit'),
    page('audit, a filter that is wrong', () => '/audit?since=yesterday', 400),
    page('audit, nothing found', () => '/audit?host=nothing.example.test'),
  ],
  '/audit/verify': [page('audit, verified', () => '/audit/verify')],
  '/audit/sinks': [page('audit sinks', () => '/audit/sinks')],
  '/dependencies': [page('dependencies', () => '/dependencies')],
  '/audit/retention': [
    page('retention', () => '/audit/retention'),
    page('retention, counted', () => '/audit/retention?before=2026-01-01'),
    page('retention, a day that is wrong', () => '/audit/retention?before=2199-01-01', 400),
  ],
  '/audit/retention/remove': [page('events to remove', () => '/audit/retention/remove?before=2026-01-01')],
  '/audit/sessions': [
    page('sessions', () => '/audit/sessions'),
    page('sessions, a cursor that is wrong', () => '/audit/sessions?cursor=x', 400),
  ],
  '/plans': [page('plans', () => '/plans')],
  '/audit/sessions/{id}': [
    page('what a session did', () => '/audit/sessions/ses_demo'),
    page('no session', () => '/audit/sessions/ses_none', 404),
  ],
  '/audit/{id}': [page('an event', ({ eventId }) => `/audit/${eventId}`)],
  '/report': [page('sealability', () => '/report')],
  '/secrets': [page('secrets', () => '/secrets'), page('secrets, stored', () => '/secrets?done=secret_stored')],
  '/secrets/new': [page('a new secret', () => '/secrets/new')],
  '/secrets/sources/new': [
    page('a new source', () => '/secrets/sources/new?kind=github_app'),
    page('a source to change', () => '/secrets/sources/new?kind=client_credentials&path=ci/minted'),
  ],
  '/secrets/source': [page('a minted secret', () => '/secrets/source?path=ci/minted&owner=personal&plan=1')],
  '/secrets/delete': [page('a secret to delete', () => '/secrets/delete?path=user/github&owner=personal')],
  '/bindings': [
    page('bindings', () => '/bindings'),
    page('a request explained', () => '/bindings?method=POST&url=https%3A%2F%2Fapi.github.com%2Fuser'),
  ],
  '/client-certificates': [page('client certificates', () => '/client-certificates')],
  '/client-certificates/{id}/delete': [
    page(
      'a client certificate to withdraw',
      ({ clientCertificateId }) => `/client-certificates/${clientCertificateId}/delete`,
    ),
  ],
  '/tunnel-hosts': [page('tunnelled hosts', () => '/tunnel-hosts')],
  '/tunnel-hosts/{id}/delete': [
    page('a tunnelled host to remove', ({ tunnelHostId }) => `/tunnel-hosts/${tunnelHostId}/delete`),
  ],
  '/bindings/new': [
    page('a new binding', () => '/bindings/new?scheme=header-template'),
    page('a binding of a template', () => '/bindings/new?from=github-git'),
  ],
  '/bindings/{id}': [
    page('a binding', ({ bindingId }) => `/bindings/${bindingId}`),
    page('no binding', () => '/bindings/bnd_nothing', 404),
  ],
  '/bindings/{id}/delete': [page('a binding to delete', ({ bindingId }) => `/bindings/${bindingId}/delete`)],
  '/bindings/{id}/edit': [page('a binding to edit', ({ bindingId }) => `/bindings/${bindingId}/edit`)],
  '/marketplace': [
    page('the marketplace', () => '/marketplace?q=weather'),
    page('the marketplace, nothing found', () => '/marketplace?q=nothing-has-this-in-it'),
    page('the marketplace, a cursor that is wrong', () => '/marketplace?cursor=x', 400),
  ],
  '/marketplace/{registryId+}': [
    page('an entry', () => `/marketplace/${WEATHER}`),
    page('an entry that deceives', () => `/marketplace/${HOSTILE}`),
    page('no entry', () => '/marketplace/io.example.none/gone', 404),
  ],
  '/mcp-rules': [page('rules of the enterprise', () => '/mcp-rules')],
  '/mcp-servers': [page('installed servers', () => '/mcp-servers')],
  '/mcp-servers/clients': [page('the set-up of a client', () => '/mcp-servers/clients')],
  '/mcp-servers/install': [
    page('a preview', () => install),
    page('settings of an install', () => `${install}&step=settings`),
  ],
  '/mcp-servers/new': [
    page('a program of one’s own', () => '/mcp-servers/new'),
    page('a remote server of one’s own', () => '/mcp-servers/new?mode=remote'),
  ],
  '/mcp-servers/{id}': [
    page('a server', ({ mcpId }) => `/mcp-servers/${mcpId}`),
    page('a remote server', ({ remoteId }) => `/mcp-servers/${remoteId}`),
  ],
  '/mcp-servers/{id}/edit': [page('a server to edit', ({ mcpId }) => `/mcp-servers/${mcpId}/edit`)],
  '/mcp-servers/{id}/authorize': [
    page('a server to sign in to', ({ remoteId }) => `/mcp-servers/${remoteId}/authorize`),
  ],
  '/mcp-servers/{id}/authorize/forget': [
    page('a sign-in to forget', ({ remoteId }) => `/mcp-servers/${remoteId}/authorize/forget`),
  ],
  '/mcp-servers/{id}/tools': [page('tools of a server', ({ mcpId }) => `/mcp-servers/${mcpId}/tools`)],
  '/mcp-servers/{id}/delete': [page('a server to delete', ({ mcpId }) => `/mcp-servers/${mcpId}/delete`)],
  '/mcp-servers/{id}/credentials': [
    page('credentials of a server', ({ mcpId }) => `/mcp-servers/${mcpId}/credentials`),
    page('a credential of a server', ({ mcpId }) => `/mcp-servers/${mcpId}/credentials?name=API_KEY`),
  ],
  '/mcp-servers/{id}/credentials/delete': [
    page('a credential to remove', ({ mcpId }) => `/mcp-servers/${mcpId}/credentials/delete?name=API_KEY`),
  ],
  '/mcp-servers/{id}/connect': [page('how clients connect', ({ mcpId }) => `/mcp-servers/${mcpId}/connect`)],
  '/mcp-servers/{id}/upgrade': [page('an update', ({ mcpId }) => `/mcp-servers/${mcpId}/upgrade`)],
  '/mcp-servers/{id}/rollback': [
    page('an earlier revision', ({ mcpId }) => `/mcp-servers/${mcpId}/rollback?revision=1`),
  ],
  '/services': [
    page('services', () => '/services'),
    page('services, found', () => '/services?q=github'),
    page('services, nothing found', () => '/services?q=api.nowhere.example.test'),
  ],
  '/services/{name}': [
    page('a service', () => '/services/github'),
    page('a service with questions', () => '/services/jira'),
    page('no service', () => '/services/nothing', 404),
  ],
  '/connectors': [page('connectors', () => '/connectors')],
  '/connectors/install': [page('a spec to install', () => '/connectors/install')],
  '/connectors/{id}': [
    page('a connector with a key', ({ connectorId }) => `/connectors/${connectorId}`),
    page('a connector with a user', ({ oauthId }) => `/connectors/${oauthId}`),
  ],
  '/connectors/{id}/remove': [page('a connector to remove', ({ connectorId }) => `/connectors/${connectorId}/remove`)],
  '/connectors/{id}/credential/delete': [
    page('a credential to delete', ({ oauthId }) => `/connectors/${oauthId}/credential/delete`),
  ],
  '/sidecars': [page('sidecars', () => '/sidecars')],
  '/sidecars/{id}/revoke': [page('a sidecar to revoke', ({ sidecarId }) => `/sidecars/${sidecarId}/revoke`)],
  '/account': [page('sign-ins and tokens', () => '/account')],
  '/account/sign-ins/{id}/end': [page('a sign-in to end', ({ signInId }) => `/account/sign-ins/${signInId}/end`)],
  '/account/mcp-clients/{id}/end': [
    page('an MCP client that is not there', () => '/account/mcp-clients/mcc_nothing/end', 404),
  ],
  '/account/tokens/new': [page('a new token', () => '/account/tokens/new')],
  '/account/tokens/{id}/revoke': [page('a token to revoke', ({ tokenId }) => `/account/tokens/${tokenId}/revoke`)],
  '/account/delete': [page('no account to delete on this machine', () => '/account/delete', 404)],
  '/members': [page('members', () => '/members')],
  '/members/{id}': [page('a member', ({ memberId }) => `/members/${memberId}`)],
  '/members/{id}/suspend': [page('a member to suspend', ({ memberId }) => `/members/${memberId}/suspend`)],
  '/members/{id}/remove': [page('a member to remove', ({ memberId }) => `/members/${memberId}/remove`)],
  '/enterprise/delete': [page('none on this machine', () => '/enterprise/delete', 404)],
  '/enterprises/leave': [page('the last owner, who stays', () => '/enterprises/leave', 409)],
  '/members/invite': [page('an invitation to send', () => '/members/invite')],
  '/members/invitations': [page('invitations', () => '/members/invitations')],
  '/members/requests': [page('requests to join', () => '/members/requests')],
  '/invitations/{token}': [page('an invitation that is not there', () => '/invitations/used-up', 404)],
  '/groups': [page('groups', () => '/groups')],
  '/groups/{id}': [page('a group that is not there', () => '/groups/grp_nothing', 404)],
  '/groups/{id}/delete': [page('no group to delete', () => '/groups/grp_nothing/delete', 404)],
  '/directory': [page('the directory of an enterprise', () => '/directory')],
  '/directory/tokens/{id}/revoke': [page('no token to revoke', () => '/directory/tokens/sct_nothing/revoke', 404)],
  '/shares': [page('shared bindings', () => '/shares')],
  '/enterprises/{id}/merge': [page('nothing to move on this machine', () => '/enterprises/ent_none/merge', 404)],
  '/enterprises': [page('enterprises of a person', () => '/enterprises')],
  '/enterprise': [page('settings of the enterprise', () => '/enterprise')],
  '/identities': [page('ways to sign in', () => '/identities')],
  '/device': [page('a code to type', () => '/device')],
  '/auth/connectors/callback': [page('no authorisation', () => '/auth/connectors/callback?error=access_denied', 400)],
  '/sign-in': [page('sign-in', () => '/sign-in')],
  '/sign-up': [page('sign-up', () => '/sign-up')],
  '/auth/link/{code}': [page('a link that was used', () => '/auth/link/used-up', 410)],
  '/auth/sso': [page('no single sign-on', () => '/auth/sso?email=pat@acme.test', 404)],
  '/auth/{provider}/login': [page('no provider', () => '/auth/nobody/login', 404)],
  '/auth/{provider}/metadata': [page('no enterprise', () => '/auth/nobody/metadata', 404)],
  '/auth/{provider}/callback': [page('no sign-in', () => '/auth/nobody/callback?code=x&state=y', 404)],
  // Its colours are those of the other pages, and checking its thousands of texts takes a minute.
  '/docs': [{ ...page('API reference', () => '/docs'), withoutRules: ['color-contrast'], isLong: true }],
};

/** URLs that browsers load and people do not view. */
export const NO_PAGES: readonly string[] = [
  '/assets/{file}',
  '/audit/export',
  '/marketplace-icons/{registryId+}',
  '/openapi.json',
  '/push_worker.js',
  '/schemas/connector-spec-1.json',
  // Redirects to a provider; its error page is that of the callback.
  '/auth/connectors/{id}/authorize',
];
