import type { OpenAPIHono, RouteConfig } from '@hono/zod-openapi';
import {
  callbackQuery,
  connectorAuthorisationParams,
  linkParams,
  loginQuery,
  providerParams,
  ssoQuery,
} from '../../../shared/wire/auth.ts';
import { CALLBACK_PATH } from '../../services/oauth/oauth_authorisation.ts';
import type { AppEnv } from '../http/app_env.ts';
import type { Method } from '../http/operation.ts';

/** A sign-in step in a browser. It answers with a redirect or a page, as the OpenAPI document says. */
interface BrowserOperation {
  readonly summary: string;
  readonly description: string;
  readonly params?: typeof providerParams | typeof linkParams | typeof connectorAuthorisationParams;
  readonly query?: typeof loginQuery | typeof callbackQuery | typeof ssoQuery;
  /** `anyone`, or a signed-in browser. */
  readonly access: 'anyone' | 'browser';
  /** Successful replies, by status. */
  readonly replies: Readonly<Record<number, string>>;
}

const ON_ITS_WAY = 'A redirect';
const PAGE = 'A page for the person at the browser';

/** Paths of the page table that are sign-in steps rather than console pages. */
const BROWSER_OPERATIONS: readonly (readonly [Method, string, BrowserOperation])[] = [
  [
    'get',
    '/auth/{provider}/login',
    {
      summary: 'Start signing in with a provider',
      description:
        'Redirects the browser to the provider and sets httpOnly cookies for the callback. The callback URL is derived from Host, X-Forwarded-Host and X-Forwarded-Proto. A browser that comes from another site must confirm first. An enterprise’s own provider works the same way, under the name that GET /auth/sso redirects to.',
      params: providerParams,
      query: loginQuery,
      access: 'anyone',
      replies: { 200: PAGE, 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/{provider}/callback',
    {
      summary: 'Return from a provider',
      description:
        "The provider's redirect. Its answer is exchanged once, with the cookies of the browser that started, and signs the browser in. At a loopback name of a local control plane, a sign-in in progress is redirected to the console’s own host name.",
      params: providerParams,
      query: callbackQuery,
      access: 'anyone',
      replies: { 200: PAGE, 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/sso',
    {
      summary: 'Find the provider of an enterprise',
      description: 'By the domain of an address, which the enterprise has proven to be its own.',
      query: ssoQuery,
      access: 'anyone',
      replies: { 200: PAGE },
    },
  ],
  [
    'post',
    '/auth/{provider}/acs',
    {
      summary: 'Receive the response of a SAML provider',
      description:
        'The assertion consumer service of an enterprise’s own SAML provider: a form with SAMLResponse and RelayState, sent by the browser from the provider’s page. A valid response redirects to the callback, which signs in only the browser that started.',
      params: providerParams,
      access: 'anyone',
      replies: { 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/{provider}/metadata',
    {
      summary: 'Get the SAML metadata for an enterprise’s own provider',
      description: 'For the enterprise’s id as the provider; its URL is also our entity id. XML.',
      params: providerParams,
      access: 'anyone',
      replies: { 200: 'SAML 2.0 metadata' },
    },
  ],
  [
    'post',
    '/auth/{provider}/link',
    {
      summary: 'Add a way to sign in to an account',
      description: 'Only from a page of this control plane: forms of other sites are refused.',
      params: providerParams,
      access: 'browser',
      replies: { 200: PAGE },
    },
  ],
  [
    'post',
    '/auth/logout',
    {
      summary: 'Sign a browser out',
      description: 'Only from a page of this control plane. A browser is redirected to the sign-in page.',
      access: 'anyone',
      replies: { 204: 'Signed out', 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/link/{code}',
    {
      summary: 'Sign a browser in with a one-time link',
      description:
        'From POST /v1/sign-in-links, and printed by svc up; valid once, and on your own machine only at the console’s own host name.',
      params: linkParams,
      access: 'anyone',
      replies: { 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/connectors/{id}/authorize',
    {
      summary: 'Authorise a connector’s oauth2 credential in a browser',
      description: 'Redirects the browser to the connector’s authorization server.',
      params: connectorAuthorisationParams,
      access: 'browser',
      replies: { 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    CALLBACK_PATH,
    {
      summary: 'Return from authorising a connector or an MCP server',
      description:
        "The authorization server's redirect. At a loopback name of a local control plane, an authorisation started in the console is redirected to the console’s own host name.",
      query: callbackQuery,
      access: 'anyone',
      replies: { 200: PAGE, 303: ON_ITS_WAY },
    },
  ],
];

/** Adds the browser's sign-in steps to the OpenAPI document. */
export function describeBrowserOperations(app: OpenAPIHono<AppEnv>): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'browser', {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-session',
    description: 'The cookie of a signed-in browser; svc_session on this machine.',
  });
  for (const [method, path, operation] of BROWSER_OPERATIONS) {
    app.openAPIRegistry.registerPath(routeOf(method, path, operation));
  }
}

function routeOf(method: Method, path: string, operation: BrowserOperation): RouteConfig {
  const { summary, description, params, query, access, replies } = operation;
  return {
    method,
    path,
    summary,
    description,
    tags: ['auth'],
    security: access === 'browser' ? [{ browser: [] }] : [],
    request: { ...(params && { params }), ...(query && { query }) },
    responses: {
      ...Object.fromEntries(Object.entries(replies).map(([status, text]) => [status, { description: text }])),
      default: {
        description: 'A page with the error',
        content: { 'text/html': { schema: { type: 'string' } } },
      },
    },
  };
}
